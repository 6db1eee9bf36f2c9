local change, always_remember = add, false
