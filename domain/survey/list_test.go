package survey_test

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/survey"
	"github.com/messagehub/messagehub/repository"
)

// lines is a survey that consists of the lines of a test.
type lines struct {
	at        time.Time
	mailboxes []domain.Mailbox
}

func (l *lines) Surveyed(context.Context) (repository.Surveyed, error) { return l, nil }
func (l *lines) At() time.Time                                         { return l.at }

func (l *lines) Summaries() iter.Seq[domain.MailboxSummary] {
	return func(yield func(domain.MailboxSummary) bool) {
		for i := range l.mailboxes {
			if !yield(l.mailboxes[i].Summary()) {
				return
			}
		}
	}
}

func (l *lines) Mailbox(recipient domain.ActorID) (domain.Mailbox, bool) {
	i := slices.IndexFunc(l.mailboxes, func(m domain.Mailbox) bool { return m.Recipient == recipient })
	if i < 0 {
		return domain.Mailbox{}, false
	}
	return l.mailboxes[i], true
}

var now = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

func parseActor(t testing.TB, name string) domain.ActorID {
	t.Helper()
	id, err := domain.ParseActorID(name)
	require.NoError(t, err)
	return id
}

func parseGroup(t testing.TB, name string) domain.Group {
	t.Helper()
	g, err := domain.ParseGroup(name)
	require.NoError(t, err)
	return g
}

func waitingMailbox(t testing.TB, name string, events int64, oldest time.Time) domain.Mailbox {
	t.Helper()
	m := domain.Mailbox{Recipient: parseActor(t, name)}
	if events > 0 {
		m.Groups = []domain.MailboxGroup{{Group: parseGroup(t, "masterdata"), Waiting: domain.Backlog{Events: events, Oldest: oldest}}}
	}
	return m
}

func namesOf(page survey.Page) []string {
	var all []string
	for _, m := range page.Mailboxes {
		all = append(all, m.Recipient.String())
	}
	return all
}

func TestList_OrdersByAgeOrByEvents(t *testing.T) {
	l := &lines{at: now, mailboxes: []domain.Mailbox{
		waitingMailbox(t, "empty", 0, time.Time{}),
		waitingMailbox(t, "young", 500, now.Add(-time.Minute)),
		waitingMailbox(t, "old", 1, now.Add(-time.Hour)),
		waitingMailbox(t, "unknown", 2, time.Time{}),
	}}
	for by, want := range map[survey.Order][]string{
		"":              {"unknown", "old", "young", "empty"},
		survey.ByAge:    {"unknown", "old", "young", "empty"},
		survey.ByEvents: {"young", "unknown", "old", "empty"},
	} {
		page, err := survey.New(l).List(t.Context(), survey.Query{Order: by})
		require.NoError(t, err)
		assert.Equal(t, want, namesOf(page))
		assert.Equal(t, 4, page.Matching)
		assert.Equal(t, now, page.SurveyedAt)
		assert.Empty(t, page.Next)
	}
}

func TestList_FiltersByState(t *testing.T) {
	frozen, damaged := waitingMailbox(t, "frozen", 1, now), waitingMailbox(t, "damaged", 1, now)
	frozen.Frozen, damaged.Damage, damaged.Frozen = true, "its head cannot be read", true
	l := &lines{at: now, mailboxes: []domain.Mailbox{waitingMailbox(t, "empty", 0, now), waitingMailbox(t, "waiting", 1, now), frozen, damaged}}
	for _, state := range []domain.MailboxState{domain.MailboxEmpty, domain.MailboxWaiting, domain.MailboxFrozen, domain.MailboxDamaged} {
		page, err := survey.New(l).List(t.Context(), survey.Query{State: state})
		require.NoError(t, err)
		assert.Equal(t, []string{string(state)}, namesOf(page))
		assert.Equal(t, 1, page.Matching)
	}
}

// The pages together have each mailbox once, in the order of the whole list.
func TestList_PagesMakeUpTheWholeList(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	l := &lines{at: now}
	for i := range 700 {
		l.mailboxes = append(l.mailboxes, waitingMailbox(t, fmt.Sprintf("actor-%03d", i), rng.Int64N(4), now.Add(-time.Duration(rng.IntN(50))*time.Second)))
	}
	rng.Shuffle(len(l.mailboxes), func(i, j int) { l.mailboxes[i], l.mailboxes[j] = l.mailboxes[j], l.mailboxes[i] })
	for _, by := range survey.Orders {
		whole, err := survey.New(l).List(t.Context(), survey.Query{Order: by, Size: survey.MaxPage})
		require.NoError(t, err)
		require.Len(t, whole.Mailboxes, 700)
		require.True(t, slices.IsSortedFunc(whole.Mailboxes, func(a, b domain.Mailbox) int {
			if by == survey.ByEvents {
				return cmp.Compare(b.Waiting().Events, a.Waiting().Events)
			}
			if a.Waiting().Events == 0 || b.Waiting().Events == 0 {
				return cmp.Compare(min(b.Waiting().Events, 1), min(a.Waiting().Events, 1))
			}
			return a.Waiting().Oldest.Compare(b.Waiting().Oldest)
		}))
		for _, size := range []int{1, 7, 100, 699, 700} {
			var got []string
			for q := (survey.Query{Order: by, Size: size}); ; {
				page, err := survey.New(l).List(t.Context(), q)
				require.NoError(t, err)
				require.LessOrEqual(t, len(page.Mailboxes), size)
				got = append(got, namesOf(page)...)
				if q.After = page.Next; q.After == "" {
					break
				}
			}
			require.Equal(t, namesOf(whole), got, "%s, %d", by, size)
		}
	}
}

func TestList_RefusesInvalidQueries(t *testing.T) {
	l := &lines{at: now, mailboxes: []domain.Mailbox{waitingMailbox(t, "a", 1, now), waitingMailbox(t, "b", 1, now)}}
	page, err := survey.New(l).List(t.Context(), survey.Query{Order: survey.ByEvents, Size: 1})
	require.NoError(t, err)
	require.NotEmpty(t, page.Next)
	for name, q := range map[string]survey.Query{
		"an unknown state":          {State: "asleep"},
		"an unknown order":          {Order: "name"},
		"a size below 1":            {Size: -1},
		"a size above the limit":    {Size: survey.MaxPage + 1},
		"a token that is no token":  {After: "<script>"},
		"a token of another length": {After: "YQ"},
		"a token of another order":  {After: page.Next, Order: survey.ByAge},
	} {
		_, err := survey.New(l).List(t.Context(), q)
		assert.Equal(t, domain.Invalid, domain.KindOf(err), "%s: %v", name, err)
	}
}
