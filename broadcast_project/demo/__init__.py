"""The main job on one machine: embedded services, the simulator in WAHA's place, and the product's processes."""
