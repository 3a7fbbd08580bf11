"""The names view: how well a label's names fit the words of a document."""
