package console

import (
	"context"
	"fmt"
	"os"
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
	"github.com/chromedp/chromedp/kb"
)

// A browser is chromium with one page. Any line on its console is a failure of the test.
type browser struct {
	t   *testing.T
	ctx context.Context
	hub *server

	mu    sync.Mutex
	lines []string // of the browser's console
}

// openBrowser starts chromium for a hub.
func openBrowser(t *testing.T, hub *server) *browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("no-proxy-server", true),
	)
	allocator, stop := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx, hub: hub}
	b.must(chromedp.Do(ctx))
	b.must(chromedp.Listen(ctx, b.listen))
	_, err := chromedp.Call(ctx, log.Enable, cdp.Empty{})
	b.must(err)
	_, err = chromedp.Call(ctx, network.Enable, network.EnableParams{})
	b.must(err)
	b.setView(wide, "light")
	return b
}

func (b *browser) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// listen remembers what is on the browser's console.
func (b *browser) listen(event any) {
	line := ""
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		line = fmt.Sprintf("console.%s", e.Type)
		for _, a := range e.Args {
			line += " " + string(a.Value) + a.Description
		}
	case *runtime.EventExceptionThrown:
		line = "exception: " + e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			line += " " + e.ExceptionDetails.Exception.Description
		}
	case *log.EventEntryAdded:
		line = fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
	default:
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, line)
}

// takeLines returns what is on the browser's console, and clears it.
func (b *browser) takeLines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	lines := b.lines
	b.lines = nil
	return lines
}

// checkLines fails the test if anything is on the browser's console.
func (b *browser) checkLines(where string) {
	b.t.Helper()
	if lines := b.takeLines(); len(lines) > 0 {
		b.t.Errorf("%s: the browser's console has\n%s", where, strings.Join(lines, "\n"))
	}
}

// The widths of windows.
const (
	wide   = 1280
	narrow = 390
)

// setView sets the width of the window, and the color scheme.
func (b *browser) setView(width int64, scheme string) {
	b.t.Helper()
	b.must(chromedp.Do(b.ctx, chromedp.EmulateViewport(width, 900)))
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	b.must(err)
}

// setScripts switches the scripts of pages on or off.
func (b *browser) setScripts(isOn bool) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !isOn})
	b.must(err)
}

// limited returns a context in which an action must complete soon.
func (b *browser) limited() (context.Context, context.CancelFunc) {
	return context.WithTimeout(b.ctx, 20*time.Second)
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := b.limited()
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatalf("%v, at %s:\n%s", err, evaluate[string](b, "location.href"), b.text())
	}
}

// open opens a page of the console.
func (b *browser) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.hub.url+path), chromedp.WaitReady(chromedp.CSS("main h1")))
}

// evaluate returns the value of an expression in the page.
func evaluate[T any](b *browser, expression string) T {
	b.t.Helper()
	ctx, cancel := b.limited()
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	b.must(err)
	return value
}

// text returns the text of the page below its header.
func (b *browser) text() string {
	b.t.Helper()
	return evaluate[string](b, `document.querySelector("main")?.innerText ?? document.body?.innerText ?? ""`)
}

// wants waits until the page has a text.
func (b *browser) wants(text string) {
	b.t.Helper()
	ctx, cancel := b.limited()
	defer cancel()
	for {
		if strings.Contains(b.text(), text) {
			return
		}
		select {
		case <-ctx.Done():
			b.t.Fatalf("the page at %s lacks %q:\n%s", evaluate[string](b, "location.href"), text, b.text())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// press presses keys.
func (b *browser) press(keys ...string) {
	b.t.Helper()
	for _, key := range keys {
		b.do(chromedp.KeyEvent(key))
	}
}

// focusByKeyboard presses the tabulator until an element has the focus.
func (b *browser) focusByKeyboard(selector string) {
	b.t.Helper()
	for range 100 {
		if evaluate[bool](b, fmt.Sprintf("document.activeElement?.matches(%q) ?? false", selector)) {
			return
		}
		b.press(kb.Tab)
	}
	b.t.Fatalf("the tabulator does not reach %s", selector)
}

// signIn signs in, by the keyboard.
func (b *browser) signIn() {
	b.t.Helper()
	b.open("/console/sign-in")
	b.focusByKeyboard("#field-name")
	b.press("Kim")
	b.focusByKeyboard("#field-token")
	b.press(adminToken, kb.Enter)
	b.wants("Overview")
}

// checkAxe fails the test if axe finds a violation in the page.
func (b *browser) checkAxe(where string) {
	b.t.Helper()
	for _, violation := range b.violations() {
		b.t.Errorf("%s: axe: %s", where, violation)
	}
}

// violations returns what axe finds in the page; nothing if axe is missing.
func (b *browser) violations() []string {
	b.t.Helper()
	if axe == "" {
		return nil
	}
	source, err := os.ReadFile(axe)
	b.must(err)
	b.do(chromedp.Evaluate[chromedp.Void](string(source)))
	return evaluate[[]string](b, `axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + v.help + ": " + n.html + " " + (n.failureSummary ?? ""))))`)
}
