"""Ready-made topologies: each module has `build(**parameters) -> Topology` and may have `report(result) -> str`."""
