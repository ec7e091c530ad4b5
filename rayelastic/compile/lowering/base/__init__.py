"""The base of lowering: declarations, engine services, views, rejections. Knows no operation of any type."""
