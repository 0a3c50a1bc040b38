package console_test

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/api/console"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/deadletters"
	"github.com/messagehub/messagehub/domain/find"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/survey"
)

// Names and texts that an attacker could choose. Each contains the word "planted". Names are
// limited to certain characters, but texts are not.
const (
	plantedLabel = `planted "'><planted onload=x><script>planted()</script>`                 // printable ASCII
	plantedName  = plantedLabel + " \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627" // letters of scripts that are written from right to left
	plantedText  = plantedName + " \u202e\u2067\u200f\u0000{{.}} </bdi></pre></table>&lt;"   // characters that change the direction of text
)

// plantedActor has the maximum length of an actor id.
var plantedActor = strings.Repeat("Planted-", 8)

// openPlanted starts a hub in which every text is planted.
func openPlanted(t *testing.T) *browser {
	t.Helper()
	b := open(t, func(o *console.Options, _ *api.Options) {
		moment := time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)
		o.Nodes = func(context.Context) ([]console.Node, int, error) {
			return []console.Node{{ID: plantedText, Host: plantedText, Version: plantedText}}, 2, nil
		}
		o.Settings = []console.Setting{{Name: "domains", Value: plantedText, Origin: "file", From: plantedText, Usage: "domains"}}
		group, err := domain.ParseGroup(plantedActor)
		require.NoError(t, err)
		bundle, err := domain.ParseBundleID(sampleBundle)
		require.NoError(t, err)
		o.Mailboxes = &lister{page: survey.Page{Mailboxes: []domain.Mailbox{{
			Recipient: parseActor(t, plantedActor), Damage: plantedText,
			Groups: []domain.MailboxGroup{{Group: group, Open: bundle, Opened: moment}},
		}}}}
		o.Find = &finder{answer: find.Answer{ID: plantedText, After: "x", Results: []find.Result{{
			Kind: find.Event, State: find.StateWaiting, Actor: parseActor(t, plantedActor), Title: plantedText,
			Steps: []find.Step{{What: find.StepAccepted, Text: plantedText, Details: []find.Detail{{Name: "why", Value: plantedText}, {Name: "bundle", Value: plantedText}}}},
			Waits: []find.Wait{{Cause: find.CauseNotPeeked, Text: plantedText, Next: plantedText}}, Notes: []string{plantedText},
		}}, Scope: find.Scope{Notes: []string{plantedText}, Damage: []find.Unread{{Recipient: plantedText, Reason: plantedText}}}}}
		o.Check = func(context.Context, hub.CheckOptions) (hub.CheckReport, error) {
			return hub.CheckReport{Found: 2, Findings: []hub.Finding{
				{Rule: "H3", Kind: "missing", Recipient: plantedText, Where: plantedText, Text: plantedText},
				{Rule: "L3", Kind: "missing", Bucket: plantedText, Where: plantedText, Text: plantedText},
			}}, nil
		}
	})
	b.domain.failure = domain.ContentFailure{Reason: plantedText, Text: plantedText}
	letter := deadletters.Content{
		DeadLetter: deadletters.DeadLetter{Number: 1, MessageID: plantedText, Reason: plantedText, Description: plantedText, ResentBy: plantedText, ContentType: plantedText, Subject: plantedText, Session: new(plantedText)},
		Body:       []byte(plantedText), Properties: map[string]string{plantedText: plantedText},
	}
	b.bus.letters = []deadletters.Content{letter}

	form := b.get("/console/sign-in").form("/console/sign-in")
	form.Set("name", plantedName[:len(plantedLabel)]+" \u05e9\u05dc\u05d5\u05dd")
	form.Set("token", adminToken)
	b.post("/console/sign-in", form).wants(http.StatusSeeOther)

	actor := parseActor(t, plantedActor)
	for _, origin := range []domain.Origin{domain.TimeSeries, domain.Charges} {
		e := domain.Event{ID: newEventID(t), Recipient: actor, Origin: origin, SupportsBundling: true, Weight: 1, Payload: []byte(`"` + strings.ReplaceAll(plantedLabel, `"`, "") + `"`)}
		var err error
		e.ContentType, err = domain.ParseContentType(plantedLabel)
		require.NoError(t, err)
		e.DocumentType, err = domain.ParseDocumentType(plantedLabel)
		require.NoError(t, err)
		_, err = b.hub.Ingest(t.Context(), []domain.Event{e})
		require.NoError(t, err)
	}
	b.peekAs(plantedActor, sampleBundle)
	_, err := b.hub.Peek(t.Context(), hub.PeekRequest{Actor: actor, Groups: []domain.Group{groupOf(t, "masterdata")}})
	require.Equal(t, domain.Unavailable, domain.KindOf(err))
	b.dequeueAndReplay(plantedActor, sampleBundle, "replayed")
	return b
}

func groupOf(t *testing.T, name string) domain.Group {
	t.Helper()
	group, err := domain.ParseGroup(name)
	require.NoError(t, err)
	return group
}

// dequeueAndReplay dequeues a bundle, which leaves a pending notice, and reopens it, which leaves a
// record.
func (b *browser) dequeueAndReplay(name, id, why string) {
	b.t.Helper()
	ctx, actor := b.t.Context(), parseActor(b.t, name)
	subscription, err := domain.ParseSubscriptionID("0190b5c0-0000-7000-8000-000000000001")
	require.NoError(b.t, err)
	_, err = b.store.RequestDequeues(ctx, actor, subscription)
	require.NoError(b.t, err)
	bundle, err := domain.ParseBundleID(id)
	require.NoError(b.t, err)
	_, err = b.hub.Dequeue(ctx, actor, bundle)
	require.NoError(b.t, err)
	_, err = b.options.Operator.Replay(ctx, actor, groupOf(b.t, "timeseries"), hub.AdminAction{Who: plantedName, Why: plantedName + " " + why})
	require.NoError(b.t, err)
}

// checkPlanted requires that each planted text on a page is a text node that is isolated from its
// surroundings. It returns their number.
func (a *pageAnswer) checkPlanted() (n int) {
	a.t.Helper()
	require.Empty(a.t, a.elements("planted"), "%s: a name has become an element: %s", a.path, a.body)
	for d := range a.root.Descendants() {
		if d.Type == html.ElementNode {
			require.Empty(a.t, attribute(d, "onload"), a.path)
			require.False(a.t, d.Data == "script" && attribute(d, "src") == "", "%s has a script in it", a.path)
		}
		if d.Type != html.TextNode || !strings.Contains(strings.ToLower(d.Data), "planted") {
			continue
		}
		n++
		isIsolated := false
		for parent := range d.Ancestors() {
			isIsolated = isIsolated || slices.Contains([]string{"bdi", "title", "textarea", "option"}, parent.Data)
		}
		require.True(a.t, isIsolated, "%s: %q is not inside bdi", a.path, d.Data)
	}
	return n
}

func TestForeignNames_AreTextsOnEveryPage(t *testing.T) {
	b := openPlanted(t)
	planted := make(map[string]int)
	visit := func(path string, a *pageAnswer) *pageAnswer {
		require.Less(t, a.status, http.StatusInternalServerError, "%s: %s", path, a.body)
		planted[path] += a.checkPlanted()
		return a
	}
	page := func(pattern string) string {
		path := b.samplePath(pattern)
		if strings.HasPrefix(pattern, "/mailboxes/") {
			path = strings.ReplaceAll(path, actor, plantedActor)
		}
		return path
	}
	reason := url.QueryEscape(plantedText)
	queryOf := func(pattern string) string {
		if strings.HasPrefix(pattern, "/dead-letters/") {
			return "?after=0&through=3&reason=" + reason
		}
		return ""
	}
	for _, path := range console.PathsOf(http.MethodPost) {
		if strings.HasPrefix(path, "/sign-") || strings.Contains(path, "/sample") {
			continue
		}
		form := b.get(page(path) + queryOf(path)).wants(http.StatusOK).form(page(path))
		form.Set("typed", plantedText)
		form.Set("why", " ")
		visit(path, b.post(page(path), form)) // the hub refuses the form, and shows it again with its text
		form.Set("why", plantedName)
		if form.Has("saw") {
			form.Set("saw", `[{"name":"Actor","value":"planted <planted>"}]`)
		}
		visit(path, b.post(page(path), form)) // the hub refuses the form, because the shown state has changed
	}
	for _, path := range []string{"/mailboxes/{actor}/bundles/{bundle}/look", "/dead-letters/{queue}/letters/{number}/look"} {
		form := b.get(page(path)).wants(http.StatusOK).form(page(path))
		form.Set("why", plantedName)
		visit(path, b.post(page(path), form).wants(http.StatusOK))
	}
	for _, path := range console.PathsOf(http.MethodGet) {
		if strings.HasPrefix(path, "/sign-in") {
			continue
		}
		visit(path, b.get(page(path)+queryOf(path)).wants(http.StatusOK))
	}
	for _, path := range []string{
		"/console/mailboxes?actor=" + reason, "/console/mailboxes?state=" + reason, "/console/mailboxes?after=" + reason, "/console/mailboxes/" + url.PathEscape(plantedText),
		"/console/find?id=" + reason + "&actor=" + reason + "&origin=" + reason + "&kind=" + reason, "/console/find?id=" + reason, "/console/find?id=x&source=" + reason,
		"/console/dead-letters/" + url.PathEscape(plantedText), "/console/dead-letters/events?after=" + reason, page("/mailboxes/{actor}/bundles/{bundle}") + "?from=" + reason,
		page("/mailboxes/{actor}") + "/bundles/" + url.PathEscape(plantedText), page("/mailboxes/{actor}") + "/orders/skip?bundle=" + reason,
		page("/mailboxes/{actor}") + "/orders/abandon?origin=" + reason, "/console/" + url.PathEscape(plantedText), "/console/sign-out?next=" + reason,
		page("/mailboxes/{actor}") + "/records?done=" + reason,
	} {
		visit(path, b.get(path))
	}
	for _, path := range []string{
		"/", "/mailboxes", "/mailboxes/{actor}", "/mailboxes/{actor}/records", "/mailboxes/{actor}/bundles/{bundle}", "/mailboxes/{actor}/bundles/{bundle}/look", "/mailboxes/{actor}/orders/{order}",
		"/find", "/dead-letters/{queue}", "/dead-letters/{queue}/records", "/dead-letters/{queue}/letters/{number}/look", "/dead-letters/{queue}/some/{order}", "/check", "/configuration",
	} {
		require.Positive(t, planted[path], "%s shows no planted text, so it is not tested", path)
	}
	visitor := open(t)
	visitor.get("/console/sign-in?next=" + reason).checkPlanted()
	form := visitor.get("/console/sign-in").form("/console/sign-in")
	form.Set("name", plantedText)
	visitor.post("/console/sign-in", form).checkPlanted()
	issuer := openWithIssuer(t, "operator")
	issuer.begin("/console/")
	a := issuer.get("/console/sign-in/callback?error=" + reason + "&error_description=" + reason + "&state=" + reason)
	a.checkPlanted()
}
