"""A realised scenario to the plan that the guest's program carries out, and what this kernel
refuses."""
