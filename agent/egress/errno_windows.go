package egress

import "golang.org/x/sys/windows"

// Windows reports these with codes of its own; the constants of package syscall never match them.
const (
	connectionRefused = windows.WSAECONNREFUSED
	connectionReset   = windows.WSAECONNRESET
	connectionAborted = windows.WSAECONNABORTED
)
