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

// A browser is Chromium with one page. Any line on its console fails the test.
type browser struct {
	t   *testing.T
	ctx context.Context
	hub *server

	mu    sync.Mutex
	lines []string // lines on the browser's console
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
	b.must(chromedp.Listen(ctx, b.recordLine))
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

// recordLine records a line on the browser's console.
func (b *browser) recordLine(event any) {
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

// takeLines returns the lines on the browser's console, and clears it.
func (b *browser) takeLines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	lines := b.lines
	b.lines = nil
	return lines
}

// checkLines fails the test if the browser's console has a line.
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

// withTimeout returns a context with the time limit of an action.
func (b *browser) withTimeout() (context.Context, context.CancelFunc) {
	return context.WithTimeout(b.ctx, 20*time.Second)
}

func (b *browser) runActions(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := b.withTimeout()
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatalf("%v, at %s:\n%s", err, evaluate[string](b, "location.href"), b.pageText())
	}
}

// openPage opens a page of the console.
func (b *browser) openPage(path string) {
	b.t.Helper()
	b.runActions(chromedp.Navigate(b.hub.url+path), chromedp.WaitReady(chromedp.CSS("main h1")))
}

// evaluate returns the value of an expression in the page.
func evaluate[T any](b *browser, expression string) T {
	b.t.Helper()
	ctx, cancel := b.withTimeout()
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	b.must(err)
	return value
}

// pageText returns the text of the page below its header.
func (b *browser) pageText() string {
	b.t.Helper()
	return evaluate[string](b, `document.querySelector("main")?.innerText ?? document.body?.innerText ?? ""`)
}

// waitForText waits until the page has a text.
func (b *browser) waitForText(text string) {
	b.t.Helper()
	ctx, cancel := b.withTimeout()
	defer cancel()
	for {
		if strings.Contains(b.pageText(), text) {
			return
		}
		select {
		case <-ctx.Done():
			b.t.Fatalf("the page at %s lacks %q:\n%s", evaluate[string](b, "location.href"), text, b.pageText())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// pressKeys presses keys.
func (b *browser) pressKeys(keys ...string) {
	b.t.Helper()
	for _, key := range keys {
		b.runActions(chromedp.KeyEvent(key))
	}
}

// focusByKeyboard presses the tabulator until an element has the focus.
func (b *browser) focusByKeyboard(selector string) {
	b.t.Helper()
	for range 100 {
		if evaluate[bool](b, fmt.Sprintf("document.activeElement?.matches(%q) ?? false", selector)) {
			return
		}
		b.pressKeys(kb.Tab)
	}
	b.t.Fatalf("the tabulator does not reach %s", selector)
}

// signIn signs in with the keyboard.
func (b *browser) signIn() {
	b.t.Helper()
	b.openPage("/console/sign-in")
	b.focusByKeyboard("#field-name")
	b.pressKeys("Kim")
	b.focusByKeyboard("#field-token")
	b.pressKeys(adminToken, kb.Enter)
	b.waitForText("Overview")
}

// checkAxe fails the test if axe finds a violation on the page.
func (b *browser) checkAxe(where string) {
	b.t.Helper()
	for _, violation := range b.findViolations() {
		b.t.Errorf("%s: axe: %s", where, violation)
	}
}

// findViolations returns the violations that axe finds on the page. Without axe, it returns none.
func (b *browser) findViolations() []string {
	b.t.Helper()
	if axe == "" {
		return nil
	}
	source, err := os.ReadFile(axe)
	b.must(err)
	b.runActions(chromedp.Evaluate[chromedp.Void](string(source)))
	return evaluate[[]string](b, `axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + v.help + ": " + n.html + " " + (n.failureSummary ?? ""))))`)
}
