package prometheus

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// openFiles is the folder with an entry for each open file.
const openFiles = "/proc/self/fd"

// collectSystem adds the memory of the process, and the traffic of its network namespace.
func collectSystem(scrape *Scrape) {
	// See proc_pid_statm(5).
	if raw, err := os.ReadFile("/proc/self/statm"); err == nil {
		var virtual, resident uint64
		if _, err := fmt.Sscan(string(raw), &virtual, &resident); err == nil {
			page := uint64(os.Getpagesize())
			scrape.memory(resident*page, virtual*page)
		}
	}
	if raw, err := os.ReadFile("/proc/self/net/netstat"); err == nil {
		traffic := parseNetstat(string(raw))
		scrape.Counter(
			"process_network_receive_bytes_total",
			"Number of bytes received by the process over the network.",
			traffic["InOctets"],
		)
		scrape.Counter(
			"process_network_transmit_bytes_total",
			"Number of bytes sent by the process over the network.",
			traffic["OutOctets"],
		)
	}
}

// parseNetstat returns the counters of IP: /proc/net/netstat has a line of names and one
// of values for each protocol.
func parseNetstat(text string) map[string]float64 {
	var names, values []string
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] == "IpExt:" {
			names, values = values, fields
		}
	}
	counters := map[string]float64{}
	for i, name := range names {
		if i < len(values) {
			counters[name], _ = strconv.ParseFloat(values[i], 64) // 0 for the protocol
		}
	}
	return counters
}
