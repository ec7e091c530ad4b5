"""The loops that sample, observe, step, apply and journal. Decide nothing: that is the policy's."""
