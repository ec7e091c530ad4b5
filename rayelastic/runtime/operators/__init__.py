"""Operators of the graph become native operators. Know no links and no other processing elements."""
