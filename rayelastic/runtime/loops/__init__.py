"""The control loops: sample, observe, step, apply and journal. They decide nothing, which is the policy's part."""
