package console

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A newcomer sends sample traffic with a button, and sees it arrive.
func TestNewcomer_SendsSampleTrafficAndSeesItArrive(t *testing.T) {
	b := openBrowser(t, startHub(t))
	b.open("/")
	b.focusByKeyboard("#field-name")
	b.press("Kim")
	b.focusByKeyboard("#field-token")
	b.press(adminToken, kb.Enter)
	b.wants("Send sample traffic")
	b.focusByKeyboard("a.button")
	b.press(kb.Enter)
	b.wants("Nothing was ever sent to the actor.")
	b.focusByKeyboard("main form button")
	b.press(kb.Enter)
	b.wants("measured-data")
	b.focusByKeyboard(`main a[href="/console/mailboxes/sample-actor"]`)
	b.press(kb.Enter)
	b.wants("Mailbox of sample-actor")
	b.checkLines("sample traffic")
}

// An operator finds the actor that stopped, freezes its mailbox and sees the record, by the keyboard alone.
func TestOperator_GivesAnOrderByTheKeyboard(t *testing.T) {
	hub := startHub(t)
	prepare(t, hub)
	b := openBrowser(t, hub)
	b.signIn()
	b.focusByKeyboard(`header a[href="/console/mailboxes"]`)
	b.press(kb.Enter)
	b.wants(stoppedActor)
	b.focusByKeyboard(`main a[href="/console/mailboxes/` + stoppedActor + `"]`)
	b.press(kb.Enter)
	b.wants("Freeze the mailbox")
	b.focusByKeyboard(`main a[href$="/orders/freeze"]`)
	b.press(kb.Enter)
	b.wants("The actor can neither peek nor dequeue")
	b.focusByKeyboard("#field-why")
	b.press("the actor asked for it")
	b.focusByKeyboard("#field-typed")
	b.press(stoppedActor, kb.Enter)
	b.wants("The order was carried out: freeze.")
	b.wants("the actor asked for it")
	b.checkLines("order")
	b.checkAxe("record")
}

// checkEachView checks the page that is shown, which a form has led to, in each view.
func (b *browser) checkEachView(name string) {
	b.t.Helper()
	for _, view := range views {
		b.setView(view.width, view.scheme)
		b.checkShown(name, view.name)
	}
	b.setView(wide, "light")
}

// An operator looks at the body of a bundle, by the keyboard alone, and the look is recorded.
func TestOperator_LooksAtABundleByTheKeyboard(t *testing.T) {
	hub := startHub(t)
	prepare(t, hub)
	b := openBrowser(t, hub)
	b.signIn()
	b.open("/console/mailboxes/" + stoppedActor)
	b.focusByKeyboard(`main a[href$="/bundles/` + openBundle + `"]`)
	b.press(kb.Enter)
	b.wants("Composed by the first Peek")
	b.focusByKeyboard(`main a[href$="/look"]`)
	b.press(kb.Enter)
	b.wants("Show the body")
	b.focusByKeyboard("#field-why")
	b.press("its actor asks", kb.Enter)
	b.wants("Your look at this bundle is recorded.")
	b.wants("kwh")
	b.checkEachView("bundle-body")
	b.focusByKeyboard(`main a[href$="/records"]`)
	b.press(kb.Enter)
	b.wants("its actor asks")
	b.checkEachView("records-with-a-look")
}

// An operator looks at a dead letter, sends one again and deletes one, by the keyboard alone.
func TestOperator_OrdersDeadLettersByTheKeyboard(t *testing.T) {
	hub := startHub(t)
	prepare(t, hub)
	b := openBrowser(t, hub)
	b.signIn()
	b.focusByKeyboard(`header a[href="/console/dead-letters"]`)
	b.press(kb.Enter)
	b.wants(deadQueue)
	b.focusByKeyboard(`main a[href="/console/dead-letters/` + deadQueue + `"]`)
	b.press(kb.Enter)
	b.wants("Send again")
	b.focusByKeyboard(`main a[href$="/letters/2/look"]`)
	b.press(kb.Enter)
	b.focusByKeyboard("#field-why")
	b.press("its sender asks", kb.Enter)
	b.wants("Your look at this message is recorded.")
	b.wants("<script>alert(1)</script>")
	b.checkEachView("dead-letter-body")
	for order, want := range map[string]string{"/letters/3/resend": "resend", "/letters/4/delete": "delete"} {
		b.open("/console/dead-letters/" + deadQueue)
		b.focusByKeyboard(`main a[href$="` + order + `"]`)
		b.press(kb.Enter)
		b.focusByKeyboard("#field-why")
		b.press("repaired")
		b.focusByKeyboard("#field-typed")
		b.press(deadQueue, kb.Enter)
		b.wants("The order was carried out.")
		b.wants(want)
	}
	b.checkEachView("dead-letter-records-filled")
}

// The text of a form is there again after its session has ended, and nothing is done by itself.
func TestForm_KeepsItsTextWhenItsSessionEnds(t *testing.T) {
	hub := startHub(t)
	prepare(t, hub)
	b := openBrowser(t, hub)
	b.signIn()
	b.open("/console/mailboxes/" + stoppedActor + "/orders/freeze")
	b.focusByKeyboard("#field-why")
	b.press("long thought about")
	_, err := chromedp.Call(b.ctx, network.ClearBrowserCookies, cdp.Empty{})
	b.must(err)
	b.focusByKeyboard("#field-typed")
	b.press(stoppedActor, kb.Enter)
	b.wants("Token of the operators")
	b.focusByKeyboard("#field-name")
	b.press("Kim")
	b.focusByKeyboard("#field-token")
	b.press(adminToken, kb.Enter)
	b.wants("Freeze the mailbox")
	if why := evaluate[string](b, `document.querySelector("#field-why").value`); why != "long thought about" {
		t.Errorf("the form has %q", why)
	}
	b.open("/console/mailboxes/" + stoppedActor)
	if strings.Contains(b.text(), "Thaw") {
		t.Error("the order was carried out")
	}
}

// A check shows its progress and result by itself.
func TestCheck_ShowsItsResultByItself(t *testing.T) {
	hub := startHub(t)
	prepare(t, hub)
	b := openBrowser(t, hub)
	b.signIn()
	b.open("/console/check")
	b.focusByKeyboard("main form button")
	b.press(kb.Enter)
	b.wants("has found nothing")
	b.checkLines("check")
	b.checkAxe("check")
}

// The harness finds faults that are planted.
func TestHarness_FindsPlantedFaults(t *testing.T) {
	b := openBrowser(t, startHub(t))
	b.open("/console/sign-in")
	if found := b.violations(); len(found) > 0 {
		t.Errorf("axe finds %q", found)
	}
	evaluate[bool](b, `document.querySelector("label").remove() ?? true`)
	if axe != "" && len(b.violations()) == 0 {
		t.Error("axe does not find a field without a label")
	}
	evaluate[bool](b, `(() => { const s = document.createElement("style"); s.textContent = "h1 { color: red }"; document.head.append(s); return true; })()`)
	b.do(chromedp.Reload())
	if lines := b.takeLines(); len(lines) == 0 {
		t.Error("a style that the policy refuses is no line on the browser's console")
	}
}

// The charts of the overview are drawn under the policy of the pages.
func TestOverview_DrawsCharts(t *testing.T) {
	b := openBrowser(t, startHub(t))
	b.signIn()
	b.do(chromedp.WaitVisible(chromedp.CSS(".chart canvas")))
	if n := evaluate[int](b, `document.querySelectorAll(".chart canvas").length`); n != 6 {
		t.Errorf("%d charts are drawn", n)
	}
	b.checkLines("charts")
}
