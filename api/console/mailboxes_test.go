package console_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/api/console"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/survey"
)

// A lister returns lists of mailboxes, and records the queries.
type lister struct {
	page  survey.Page
	query survey.Query
}

func (l *lister) List(_ context.Context, q survey.Query) (survey.Page, error) {
	l.query = q
	return l.page, q.Check()
}

func TestMailboxes_AreListedWithFilterOrderAndNextPart(t *testing.T) {
	now := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	group, err := domain.ParseGroup("timeseries")
	require.NoError(t, err)
	bundle, err := domain.ParseBundleID("0190b5c0-0000-7000-8000-000000000001")
	require.NoError(t, err)
	l := &lister{page: survey.Page{SurveyedAt: now.Add(-3 * time.Second), Matching: 100000, Next: "bmV4dA", Mailboxes: []domain.Mailbox{{
		Recipient: parseActor(t, actor), Damage: "<b>",
		Groups: []domain.MailboxGroup{{Group: group, Waiting: domain.Backlog{Events: 1234, Oldest: now.Add(-7 * 24 * time.Hour)}, Open: bundle, Opened: now.Add(-time.Hour)}},
	}}}}
	b := openSignedIn(t, func(o *console.Options, _ *api.Options) { o.Mailboxes = l })
	a := b.get("/console/mailboxes?state=damaged&sort=events&after=x").wants(http.StatusBadRequest)
	require.Contains(t, a.text(), "after")
	a = b.get("/console/mailboxes?state=damaged&sort=events").wants(http.StatusOK)
	require.Equal(t, survey.Query{State: domain.MailboxDamaged, Order: survey.ByEvents}, l.query)
	require.Contains(t, a.text(), "100 000 mailboxes, as of 2026-11-27T08:59:57Z , 3 s ago.")
	require.Contains(t, a.text(), actor+" damaged <b> 1 234 7 d 1 h in timeseries – –")
	require.Contains(t, a.body, `href="/console/mailboxes?after=bmV4dA&amp;sort=events&amp;state=damaged"`)
	require.Equal(t, "damaged", a.form("/console/mailboxes").Get("state"))

	l.page = survey.Page{}
	require.Contains(t, b.get("/console/mailboxes").text(), "while the first survey still reads")
	require.Equal(t, "/console/mailboxes/"+actor, b.get("/console/mailboxes?actor="+actor).wants(http.StatusSeeOther).header.Get("Location"))
	require.Contains(t, b.get("/console/mailboxes?actor=a+b").wants(http.StatusOK).text(), "Actor id")
}
