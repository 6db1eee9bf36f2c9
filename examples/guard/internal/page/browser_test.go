package page

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// chromium returns the path of a browser. Without one it skips the test, or fails it if SIFTKV_BROWSER is "required".
func chromium(t *testing.T) string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	require.NotEqual(t, "required", os.Getenv("SIFTKV_BROWSER"), "there is no Chromium: apt-get install chromium")
	t.Skip("there is no Chromium: apt-get install chromium")
	return ""
}

// A tab shows a page in a headless browser, and notes what must not happen. Its methods end the
// test if the browser fails.
type tab struct {
	t      *testing.T
	ctx    context.Context
	origin string

	mu       sync.Mutex
	strays   []string // requests that go elsewhere
	console  []string // warnings, errors, exceptions
	requests int
}

// openTab starts a browser with an empty profile and goes to a page.
func openTab(t *testing.T, browser, url string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(browser), chromedp.UserDataDir(t.TempDir()), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.WindowSize(1280, 900))...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits for the browser, so that its directory can go
		cancel()
	})
	b := &tab{t: t, ctx: ctx, origin: url}
	command(b, network.Enable, network.EnableParams{})
	require.NoError(t, chromedp.Listen(ctx, b.note))
	b.do(chromedp.Navigate(url + "/"))
	return b
}

// note notes an event.
func (b *tab) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests++
		if !strings.HasPrefix(e.Request.URL, b.origin+"/") {
			b.strays = append(b.strays, e.Request.URL)
		}
	case *runtime.EventConsoleAPICalled:
		b.console = append(b.console, "console."+string(e.Type))
	case *runtime.EventExceptionThrown:
		b.console = append(b.console, e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		b.console = append(b.console, e.Entry.Text+" "+e.Entry.URL)
	}
}

// quiet requires that nothing happened that must not.
func (b *tab) quiet() {
	b.t.Helper()
	require.Equal(b.t, 1, eval[int](b, "1"), "what went before has been told")
	b.mu.Lock()
	defer b.mu.Unlock()
	require.NotZero(b.t, b.requests)
	require.Empty(b.t, b.strays, "a request leaves the page")
	require.Empty(b.t, b.console)
}

// do runs actions.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, steps...))
}

// eval runs a program in the page.
func eval[T any](b *tab, program string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](program))
	require.NoError(b.t, err)
	return value
}

// command sends a command of the browser's protocol.
func command[P, R any](b *tab, c cdp.Command[P, R], params P) R {
	b.t.Helper()
	r, err := chromedp.Call(b.ctx, c, params)
	require.NoError(b.t, err)
	return r
}

// wait waits until an expression is true, for as long as it takes.
func (b *tab) wait(expression string) {
	b.t.Helper()
	_, err := chromedp.Run(b.ctx, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(0),
		chromedp.WithPollingInterval(10*time.Millisecond)))
	require.NoError(b.t, err, expression)
}

// click moves the mouse to the middle of an element and clicks.
func (b *tab) click(selector string) {
	b.t.Helper()
	at := eval[struct{ X, Y float64 }](b, `(() => {
		const node = document.querySelector(`+"`"+selector+"`"+`);
		node.scrollIntoView({ block: "center", behavior: "instant" });
		const { x, y, width, height } = node.getBoundingClientRect();
		return { X: x + width / 2, Y: y + height / 2 };
	})()`)
	b.do(chromedp.MouseClickXY(at.X, at.Y))
}

// resize makes the window another one, of a screen or of a phone.
func (b *tab) resize(width, height int64) {
	b.t.Helper()
	command(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 600,
	})
}
