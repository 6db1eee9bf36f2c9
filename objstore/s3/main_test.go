package s3

import (
	"fmt"
	"os"
	"testing"
)

// TestMain ends the gateway that the tests share, and makes the binary a process of another kind where a
// test asks for one.
func TestMain(m *testing.M) {
	for name, run := range map[string]func(string) error{uploader: upload, writerEnv: runWriter} {
		if text := os.Getenv(name); text != "" {
			fmt.Fprintln(os.Stderr, run(text))
			os.Exit(1)
		}
	}
	status := m.Run()
	stopShared()
	os.Exit(status)
}
