"""Controllers of a stage of channels: ElasticLoadBalance and IPDPS'09. Know no queues."""
