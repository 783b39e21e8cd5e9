"""What the machine is: threads, devices, precision, time and memory."""
