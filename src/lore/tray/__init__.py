"""The tray icon: the state of the daemon at a glance, and a menu to control it."""
