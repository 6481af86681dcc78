package prometheus

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

var (
	kernel32       = windows.NewLazySystemDLL("kernel32.dll")
	getMemoryInfo  = kernel32.NewProc("K32GetProcessMemoryInfo")
	getHandleCount = kernel32.NewProc("GetProcessHandleCount")
)

// maxHandles is how many handles a process can have open on any version of Windows.
const maxHandles = 1 << 24

// collectFiles adds the number of open handles.
func collectFiles(s *Scrape) {
	var open uint32
	if ok, _, _ := getHandleCount.Call(uintptr(windows.CurrentProcess()), uintptr(unsafe.Pointer(&open))); ok != 0 {
		s.files(uint64(open), maxHandles)
	}
}

// memoryCounters is PROCESS_MEMORY_COUNTERS_EX.
type memoryCounters struct {
	size, faults                   uint32
	peakWorkingSet, workingSet     uintptr
	peakPaged, paged               uintptr
	peakNonPaged, nonPaged         uintptr
	pagefile, peakPagefile, commit uintptr
}

// collectSystem adds the memory of the process.
func collectSystem(s *Scrape) {
	var m memoryCounters
	m.size = uint32(unsafe.Sizeof(m))
	if ok, _, _ := getMemoryInfo.Call(
		uintptr(windows.CurrentProcess()),
		uintptr(unsafe.Pointer(&m)),
		unsafe.Sizeof(m),
	); ok != 0 {
		s.memory(uint64(m.workingSet), uint64(m.commit))
	}
}
