package chart

import (
	"context"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// chromium returns the path of a browser, empty if there is none.
func chromium() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// A tab shows a page in a headless browser, and notes what must not happen. Its methods
// end the test if the browser fails.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	requests []string // beyond the page
	console  []string // warnings, errors, exceptions
}

// patience is how long a browser may take with all that is asked of it.
const patience = 9 * time.Minute

// openTab starts a browser with an empty profile and goes to a file.
func openTab(t *testing.T, browser, file string) *tab {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(browser), chromedp.UserDataDir(t.TempDir()), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.WindowSize(1280, 900))...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits for the browser, so that its directory can go
		cancel()
	})
	b := &tab{t: t, ctx: ctx}
	command(b, network.Enable, network.EnableParams{})
	require.NoError(t, chromedp.Listen(ctx, b.note))
	b.do(chromedp.Navigate("file://" + file))
	return b
}

// note notes an event. The browser tells it before it answers the next command.
func (b *tab) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		scheme, _, _ := strings.Cut(e.Request.URL, ":")
		if scheme != "file" && scheme != "data" && scheme != "blob" {
			b.requests = append(b.requests, e.Request.URL)
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
	require.Empty(b.t, b.requests, "a request leaves the page")
	require.Empty(b.t, b.console)
}

// do runs actions.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, steps...))
}

// get runs an action that has a result.
func get[T any](b *tab, a chromedp.Action[T]) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, a)
	require.NoError(b.t, err)
	return value
}

// eval runs a program in the page.
func eval[T any](b *tab, program string) T {
	b.t.Helper()
	return get(b, chromedp.Evaluate[T](program))
}

// command sends a command of the browser's protocol.
func command[P, R any](b *tab, c cdp.Command[P, R], params P) R {
	b.t.Helper()
	r, err := chromedp.Call(b.ctx, c, params)
	require.NoError(b.t, err)
	return r
}

// wait waits until an expression is true, or patience is over.
func (b *tab) wait(expression string) {
	b.t.Helper()
	get(b, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(0),
		chromedp.WithPollingInterval(10*time.Millisecond)))
}

// A place is a rectangle of the window.
type place struct{ X, Y, Width, Height float64 }

// find scrolls to what an expression gives and says where it is.
func (b *tab) find(element string) place {
	b.t.Helper()
	return eval[place](b, `(() => {
		const node = `+element+`;
		node.scrollIntoView({ block: "center", behavior: "instant" });
		const { x, y, width, height } = node.getBoundingClientRect();
		return { X: x, Y: y, Width: width, Height: height };
	})()`)
}

// click moves the mouse to the middle of an element and clicks.
func (b *tab) click(element string) {
	b.t.Helper()
	at := b.find(element)
	x, y := at.X+at.Width/2, at.Y+at.Height/2
	b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x, y), chromedp.MouseClickXY(x, y))
}

// drag presses the mouse on a point, moves it to another and releases it.
func (b *tab) drag(fromX, fromY, toX, toY float64) {
	b.t.Helper()
	b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, fromX, fromY),
		chromedp.MouseEvent(input.DispatchMouseEventTypeMousePressed, fromX, fromY, chromedp.ButtonLeft),
		chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, (fromX+toX)/2, (fromY+toY)/2,
			chromedp.ButtonLeft), chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, toX, toY,
			chromedp.ButtonLeft),
		chromedp.MouseEvent(input.DispatchMouseEventTypeMouseReleased, toX, toY, chromedp.ButtonLeft))
}

// drop drops files on an element.
func (b *tab) drop(element string, files ...string) {
	b.t.Helper()
	at := b.find(element)
	data := &input.DragData{Items: []*input.DragDataItem{}, Files: files, DragOperationsMask: 1}
	for _, kind := range []input.DispatchDragEventType{input.DispatchDragEventTypeDragEnter,
		input.DispatchDragEventTypeDragOver, input.DispatchDragEventTypeDrop} {
		command(b, input.DispatchDragEvent,
			input.DispatchDragEventParams{Type: kind, X: at.X + at.Width/2, Y: at.Y + at.Height/2, Data: data})
	}
}
