"""Messages of chat APIs as events: the forms of their content, their times, and the events that they become."""
