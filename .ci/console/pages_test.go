package console

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// A row is a page for operators. A new page needs a row.
type row struct {
	name string // name of its screenshots
	path string
	want string // text on the page
}

var pages = []row{
	{"overview", "/console/", "Accepted events a second"},
	{"sample", "/console/sample", "Send five events"},
	{"mailboxes", "/console/mailboxes", stoppedActor},
	{"mailboxes-filtered", "/console/mailboxes?state=open&sort=events", stoppedActor},
	{"mailbox", "/console/mailboxes/" + stoppedActor, "Skip the bundle"},
	{"mailbox-empty", "/console/mailboxes/" + longestActor, longestActor},
	{"bundle", "/console/mailboxes/" + stoppedActor + "/bundles/" + openBundle, "Composed by the first Peek"},
	{"bundle-look", "/console/mailboxes/" + stoppedActor + "/bundles/" + openBundle + "/look", "Show the body"},
	{"skip", "/console/mailboxes/" + stoppedActor + "/orders/skip?bundle=" + openBundle, "Skip the bundle"},
	{"records", "/console/mailboxes/" + stoppedActor + "/records", "No operator has given an order"},
	{"freeze", "/console/mailboxes/" + stoppedActor + "/orders/freeze", "Freeze the mailbox"},
	{"find", "/console/find", "Of an event, a bundle"},
	{"found", "/console/find?id=0190b5c0-000d-7000-8000-000000000001", "not-dequeued"},
	{"not-found", "/console/find?id=0190b5c0-000d-7000-8000-ffffffffffff", "Nothing with this id is stored"},
	{"dead-letters", "/console/dead-letters", "dataavailable-fifo"},
	{"dead-letters-none", "/console/dead-letters/dataavailable-fifo", "There are no dead letters"},
	{"dead-letters-of-a-queue", "/console/dead-letters/" + deadQueue, "Send again"},
	{"dead-letters-of-a-reason", "/console/dead-letters/" + deadQueue + "?reason=not-json", "Send these again"},
	{"dead-letter-look", "/console/dead-letters/" + deadQueue + "/letters/1/look", "Show the message"},
	{"dead-letter-resend", "/console/dead-letters/" + deadQueue + "/letters/1/resend", "Send it again"},
	{"dead-letter-delete", "/console/dead-letters/" + deadQueue + "/letters/2/delete", "Delete it"},
	{"dead-letters-delete", "/console/dead-letters/" + deadQueue + "/some/delete?reason=not-json&after=0&through=100", "Delete them"},
	{"dead-letter-records", "/console/dead-letters/" + deadQueue + "/records", "No operator has given an order"},
	{"check", "/console/check", "Start a check"},
	{"configuration", "/console/configuration", "in-memory"},
	{"configuration-all", "/console/configuration?all=1", "retention"},
	{"sign-out", "/console/sign-out", "Sign out"},
	{"missing", "/console/missing", "There is no such page"},
}

func TestPages(t *testing.T) {
	hub := startHub(t)
	prepareMailboxes(t, hub)
	b := openBrowser(t, hub)
	b.openPage("/console/sign-in")
	b.checkPage(&row{"sign-in", "/console/sign-in", "Sign in"})
	b.signIn()
	b.checkLines("sign-in")
	for i := range pages {
		p := &pages[i]
		t.Run(p.name, func(t *testing.T) {
			b.t = t
			b.checkPage(p)
		})
		b.t = t
	}
}

// figures are the costs of a page in the browser.
type figures struct {
	Bytes   int     `json:"bytes"`
	Elapsed float64 `json:"elapsed"` // milliseconds until the last byte of the page
}

// views are the window sizes, colour schemes and script settings with which each page is checked.
var views = []struct {
	name, scheme string
	width        int64
}{{"light", "light", wide}, {"dark", "dark", wide}, {"narrow", "light", narrow}}

// checkShown checks the current page, and takes a screenshot.
func (b *browser) checkShown(name, view string) {
	b.t.Helper()
	where := name + ", " + view
	if overflow := evaluate[int](b, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); overflow > 0 {
		b.t.Errorf("%s: the page is %d pixels wider than the window", where, overflow)
	}
	b.checkAxe(where)
	ctx, cancel := b.withTimeout()
	picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	cancel()
	b.must(err)
	savePicture(b.t, name+"-"+view, picture)
	if name == "missing" {
		b.takeLines() // the browser logs a line for the status 404
	}
	b.checkLines(where)
}

// checkPage opens a page in each view.
func (b *browser) checkPage(p *row) {
	b.t.Helper()
	for _, view := range views {
		b.setView(view.width, view.scheme)
		b.openPage(p.path)
		b.waitForText(p.want)
		b.checkShown(p.name, view.name)
	}
	b.setView(wide, "light")

	f := evaluate[figures](b, `(() => {
		const [page] = performance.getEntriesByType("navigation");
		return {bytes: page.transferSize + performance.getEntriesByType("resource").reduce((n, r) => n + (r.transferSize || r.encodedBodySize), 0), elapsed: page.responseEnd - page.startTime};
	})()`)
	for range 2 { // repeated, because the machine may be busy
		b.openPage(p.path)
		f.Elapsed = min(f.Elapsed, evaluate[float64](b, `(() => { const [page] = performance.getEntriesByType("navigation"); return page.responseEnd - page.startTime; })()`))
	}
	b.t.Logf("%s: %d bytes the first time, %.0f ms", p.name, f.Bytes, f.Elapsed)
	if f.Bytes > 300<<10 || f.Elapsed > 200 {
		b.t.Errorf("%s: %d bytes and %.0f ms; the limits are 300 KB and 200 ms", p.name, f.Bytes, f.Elapsed)
	}

	b.setScripts(false)
	b.openPage(p.path)
	b.setScripts(true)
	b.waitForText(p.want)
	b.takeLines() // removes the lines about blocked scripts
}
