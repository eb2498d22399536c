"""From a realised scenario to the plan that the guest's program carries out, and the scenarios that
this kernel refuses."""
