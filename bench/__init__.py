"""The yardstick: what a turn costs around the model, here and in what one would use instead."""
