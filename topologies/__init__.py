"""Ready-made topologies: what can be started has `build(**parameters) -> Topology`, and maybe `report(result) -> str`.

The rest is what they are made of: `pcap`, `dns`, `threats`, `dns_traffic`, `change_stream`, `web_socket`, `shapes`,
`multiplications`. All are modules of `rayelastic.topologies`, whose folder in the sources is a link to this one.
"""
