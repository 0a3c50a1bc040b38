package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/api/console"
)

const freezePath = "/console/mailboxes/" + actor + "/orders/freeze"

// filled returns the fields of an order's form, with a reason and the typed actor.
func filled(a *pageAnswer, path string) url.Values {
	form := a.form(path)
	form.Set("why", "the actor asked for it")
	form.Set("typed", actor)
	return form
}

func TestOrder_IsRecordedWithItsReason(t *testing.T) {
	b := openSignedIn(t)
	b.save(actor, "TimeSeries", 2)
	form := filled(b.get(freezePath).wants(http.StatusOK), freezePath)
	location := b.post(freezePath, form).wants(http.StatusSeeOther).header.Get("Location")
	require.Equal(t, "/console/mailboxes/"+actor+"/records?done=freeze", location)
	text := b.get(location).wants(http.StatusOK).text()
	require.Contains(t, text, "The order was carried out: freeze.")
	require.Contains(t, text, "freeze admin.token (Kim) the actor asked for it")
	require.Contains(t, b.get("/console/mailboxes/"+actor).text(), "Thaw the mailbox")
	require.Contains(t, b.logs.String(), `"who":"admin.token (Kim)"`)
}

func TestOrder_NeedsReasonAndActorTypedAgain(t *testing.T) {
	b := openSignedIn(t)
	b.save(actor, "TimeSeries", 2)
	for _, change := range []func(url.Values){
		func(form url.Values) { form.Set("why", " ") },
		func(form url.Values) { form.Set("why", strings.Repeat("x", 1001)) },
		func(form url.Values) { form.Set("why", "two\nlines") },
		func(form url.Values) { form.Set("typed", "") },
		func(form url.Values) { form.Set("typed", actor+"x") },
	} {
		form := filled(b.get(freezePath), freezePath)
		change(form)
		a := b.post(freezePath, form).wants(http.StatusUnprocessableEntity)
		require.Contains(t, a.text(), "Nothing was done.")
	}
	records, err := b.options.Operator.Records(t.Context(), parseActor(t, actor), 10)
	require.NoError(t, err)
	require.Empty(t, records)
}

func TestOrder_GivenTwiceIsRefusedAndShowsTheChange(t *testing.T) {
	b := openSignedIn(t)
	b.save(actor, "TimeSeries", 2)
	form := filled(b.get(freezePath), freezePath)
	b.post(freezePath, form).wants(http.StatusSeeOther)
	a := b.post(freezePath, form).wants(http.StatusConflict)
	require.Contains(t, a.text(), "the state on this page has changed")
	require.Contains(t, a.text(), "Mailbox not frozen frozen")
	require.Equal(t, "the actor asked for it", a.form(freezePath).Get("why"), "the text is kept")
	require.Empty(t, a.form(freezePath).Get("typed"))
	again := a.form(freezePath)
	again.Set("typed", actor)
	b.post(freezePath, again).wants(http.StatusSeeOther)
	records, err := b.options.Operator.Records(t.Context(), parseActor(t, actor), 10)
	require.NoError(t, err)
	require.Len(t, records, 2)
}

func TestOrder_OfAnOldPageIsRefused(t *testing.T) {
	b := openSignedIn(t)
	b.save(actor, "TimeSeries", 2)
	bundle := b.peek(actor)
	skip := "/console/mailboxes/" + actor + "/orders/skip"
	form := filled(b.get(skip+"?bundle="+bundle).wants(http.StatusOK), skip)
	release := "/console/mailboxes/" + actor + "/orders/release"
	b.post(release, filled(b.get(release+"?bundle="+bundle), release)).wants(http.StatusSeeOther)
	require.Contains(t, b.post(skip, form).wants(http.StatusConflict).text(), "The bundle is not open")
}

func TestOrder_WithoutTheShownStateIsRefused(t *testing.T) {
	b := openSignedIn(t)
	b.save(actor, "TimeSeries", 2)
	form := filled(b.get(freezePath), freezePath)
	for _, saw := range []string{"", "x", "[]", `[{"name":"Mailbox","value":"<script>"}]`} {
		form.Set("saw", saw)
		a := b.post(freezePath, form).wants(http.StatusConflict)
		require.NotContains(t, a.body, "<script>")
	}
}

func TestOrders_HaveTheirDescribedEffects(t *testing.T) {
	b := openSignedIn(t)
	b.save(actor, "TimeSeries", 2)
	bundle := b.peek(actor)
	give := func(order string, query ...string) {
		t.Helper()
		path := "/console/mailboxes/" + actor + "/orders/" + order
		page := path
		if len(query) > 0 {
			page += "?" + query[0] + "=" + url.QueryEscape(query[1])
		}
		b.post(path, filled(b.get(page).wants(http.StatusOK), path)).wants(http.StatusSeeOther)
	}
	give("skip", "bundle", bundle)
	give("replay", "group", "timeseries")
	give("release", "bundle", b.peek(actor))
	give("freeze")
	give("thaw")
	records, err := b.options.Operator.Records(t.Context(), parseActor(t, actor), 10)
	require.NoError(t, err)
	require.Len(t, records, 5)
	page := b.get("/console/mailboxes/" + actor).wants(http.StatusOK)
	require.Contains(t, page.text(), "TimeSeries , measured-data")
	abandon := "/console/mailboxes/" + actor + "/orders/abandon"
	a := b.post(abandon, filled(b.get(abandon+"?origin=TimeSeries&contentType=measured-data").wants(http.StatusOK), abandon)).wants(http.StatusConflict)
	require.Contains(t, a.text(), "The order failed")
}

func TestForm_KeepsItsTextWhenTheSessionEnds(t *testing.T) {
	b := openSignedIn(t)
	b.save(actor, "TimeSeries", 2)
	reason := strings.Repeat("Grüße an alle, ", 60)
	form := filled(b.get(freezePath), freezePath)
	form.Set("why", reason)
	b.clock.advance(console.SessionIdle + time.Second)
	location := b.post(freezePath, form).wants(http.StatusSeeOther).header.Get("Location")
	require.Equal(t, "/console/sign-in?next="+url.QueryEscape(freezePath), location)
	records, err := b.options.Operator.Records(t.Context(), parseActor(t, actor), 10)
	require.NoError(t, err)
	require.Empty(t, records, "nothing is executed")

	signIn := b.get(location).form("/console/sign-in")
	signIn.Set("name", "Kim")
	signIn.Set("token", adminToken)
	require.Equal(t, freezePath, b.post("/console/sign-in", signIn).wants(http.StatusSeeOther).header.Get("Location"))
	a := b.get(freezePath).wants(http.StatusOK)
	require.Equal(t, strings.TrimSpace(reason), strings.TrimSpace(a.form(freezePath).Get("why")))
	require.Empty(t, b.get(freezePath).form(freezePath).Get("why"), "it is shown once")
	b.post(freezePath, filled(a, freezePath)).wants(http.StatusSeeOther)
}

func TestForm_KeepsItsTextAfterSigningInAgainElsewhere(t *testing.T) {
	b := openSignedIn(t)
	b.save(actor, "TimeSeries", 2)
	form := filled(b.get(freezePath), freezePath)
	b.signOut()
	b.signIn()
	b.post(freezePath, form).wants(http.StatusForbidden)
	require.Equal(t, "the actor asked for it", b.get(freezePath).form(freezePath).Get("why"))
}

func (b *browser) signOut() {
	b.t.Helper()
	b.post("/console/sign-out", b.get("/console/").form("/console/sign-out")).wants(http.StatusSeeOther)
}

func TestLink_DoesNotTypeTheActorAgain(t *testing.T) {
	b := openSignedIn(t)
	b.save(actor, "TimeSeries", 2)
	form := b.get(freezePath + "?why=a+reason&typed=" + actor).form(freezePath)
	require.Equal(t, "a reason", form.Get("why"))
	require.Empty(t, form.Get("typed"))
}

func TestOrder_ThatDoesNotExistIsNotFound(t *testing.T) {
	b := openSignedIn(t)
	b.get("/console/mailboxes/" + actor + "/orders/destroy").wants(http.StatusNotFound)
	require.Contains(t, b.get("/console/mailboxes/"+actor+"/orders/skip?bundle=x").wants(http.StatusBadRequest).text(), "The order cannot be read")
	b.get("/console/mailboxes/" + url.PathEscape(`a<b>"`)).wants(http.StatusBadRequest)
}

func TestNames_AreEscapedAndIsolated(t *testing.T) {
	b := open(t)
	form := b.get("/console/sign-in").form("/console/sign-in")
	name := `<script>alert("x")</script>` + "שלום"
	form.Set("name", name)
	form.Set("token", adminToken)
	b.post("/console/sign-in", form).wants(http.StatusSeeOther)
	longest := strings.Repeat("a", 64)
	b.save(longest, "TimeSeries", 1)
	path := "/console/mailboxes/" + longest + "/orders/freeze"
	order := b.get(path).form(path)
	order.Set("why", `<img src=x onerror=alert(1)> "quoted" עברית`)
	order.Set("typed", longest)
	a := b.get(b.post(path, order).wants(http.StatusSeeOther).header.Get("Location")).wants(http.StatusOK)
	require.NotContains(t, a.body, "<script>alert")
	require.NotContains(t, a.body, "<img")
	isolated := 0
	for _, n := range a.elements("bdi") {
		if text := textOf(n); strings.Contains(text, "שלום") || strings.Contains(text, "עברית") || text == longest {
			isolated++
		}
	}
	require.GreaterOrEqual(t, isolated, 4, a.body)
}

func TestCheck_ShowsWhatItFinds(t *testing.T) {
	found := make(chan struct{})
	b := openSignedIn(t, func(o *console.Options, _ *api.Options) { o.Check = checkThatWaits(found) })
	form := b.get("/console/check").form("/console/check")
	b.post("/console/check", form).wants(http.StatusSeeOther)
	a := b.get("/console/check").wants(http.StatusOK)
	require.Contains(t, a.text(), "runs")
	require.Contains(t, a.body, `data-hx-get="/console/part/check"`)
	require.Contains(t, b.post("/console/check", form).wants(http.StatusTooManyRequests).text(), "A check already runs")
	close(found)
	require.Eventually(t, func() bool {
		text := textOf(b.get("/console/part/check").root)
		return strings.Contains(text, "has found something") && strings.Contains(text, "a drawer is missing")
	}, 10*time.Second, time.Millisecond)
	require.NotContains(t, b.get("/console/check").body, `data-hx-get="/console/part/check"`)
	form.Set("actor", "a b")
	require.Contains(t, b.post("/console/check", form).wants(http.StatusUnprocessableEntity).text(), "Actor id")
}

func TestMailbox_ShowsWhoFrozeItAndWhy(t *testing.T) {
	b := openSignedIn(t)
	b.save(actor, "TimeSeries", 2)
	b.post(freezePath, filled(b.get(freezePath), freezePath)).wants(http.StatusSeeOther)
	page := b.get("/console/mailboxes/" + actor).wants(http.StatusOK)
	require.Regexp(t, `State frozen by admin\.token \(Kim\) , 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ : the actor asked for it`, page.text())
}
