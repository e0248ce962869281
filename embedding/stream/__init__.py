"""Between crawler and gradients: the bounded queue and the replay memory."""
