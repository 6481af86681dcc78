package child

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// tree is a job object. Windows kills what is in it when its last handle is
// closed, so also when this process dies.
type tree windows.Handle

func newTree(pid int) (tree, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, err
	}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	if _, err = windows.SetInformationJobObject(
		job,
		windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)),
		uint32(unsafe.Sizeof(limits)),
	); err == nil {
		err = assign(job, pid)
	}
	if err != nil {
		_ = windows.CloseHandle(job)
		return 0, err
	}
	return tree(job), nil
}

func assign(job windows.Handle, pid int) error {
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(pid))
	if err != nil {
		return err
	}
	defer windows.CloseHandle(process)
	return windows.AssignProcessToJobObject(job, process)
}

// terminate does nothing: Windows has no request to end for programs without a
// window.
func (t tree) terminate() {}
func (t tree) kill() {
	_ = windows.TerminateJobObject(windows.Handle(t), 1)
}
func (t tree) close() {
	_ = windows.CloseHandle(windows.Handle(t))
}

func groupAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
}
