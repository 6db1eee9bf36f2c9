//go:build unix

package clitest

import (
	"io/fs"
	"os/exec"
	"syscall"
)

// limitFileSize lets no file that this process writes grow beyond limit bytes.
func limitFileSize(limit uint64) error {
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit})
}

// runAs has a process run with the rights of a user, and of the group of the same number.
func runAs(cmd *exec.Cmd, id uint32) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}}
}

// makeDevice makes a character device that all users may read and write.
func makeDevice(name string, major, minor int) error {
	return syscall.Mknod(name, syscall.S_IFCHR|0o666, major<<8|minor)
}

// ownerOf returns the numbers of a file's user and group.
func ownerOf(info fs.FileInfo) [2]uint32 {
	stat := info.Sys().(*syscall.Stat_t)
	return [2]uint32{stat.Uid, stat.Gid}
}

func makePipe(name string) error { return syscall.Mkfifo(name, 0o600) }
