package redistest

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const orphanRole = "REDISTEST_ORPHAN"

// TestServersDieWithTheTestsProcess kills a process of tests, whose cleanups do not run then.
func TestServersDieWithTheTestsProcess(t *testing.T) {
	RequireReal(t)
	if os.Getenv(orphanRole) != "" { // the process that is killed
		fmt.Println("addr", Start(t).Addr)
		select {}
	}
	child := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	child.Env = append(os.Environ(), orphanRole+"=1", "TMPDIR="+t.TempDir())
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	addr := ""
	for lines := bufio.NewScanner(out); addr == "" && lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "addr "); ok {
			addr = text
		}
	}
	require.NoError(t, child.Process.Kill())
	_ = child.Wait() // "signal: killed"
	require.NotEmpty(t, addr)
	Await(t, "end of the server", func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
}
