"""The lab stands on top of the engine; the engine never imports it."""
