package cosmos

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/survey"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// surveyOf returns a survey that reads the store of a rig over a separate connection.
func surveyOf(r *rig, node *Repository, opts survey.Options) *survey.Survey {
	if opts.Clock == nil {
		opts.Clock = node.opts.Clock
	}
	return survey.New(r.connect(), node.SurveyReader(), opts)
}

// runRound runs one round of a survey.
func runRound(t testing.TB, s *survey.Survey) {
	t.Helper()
	isOwner, err := s.Round(context.Background())
	require.NoError(t, err)
	require.True(t, isOwner, "another node surveys")
}

// requireLine requires that the line of a mailbox matches the result of Inspect.
func requireLine(t testing.TB, s *survey.Survey, node *Repository, recipient domain.ActorID) *domain.Mailbox {
	t.Helper()
	line := requireReading(t, s, node, recipient)
	require.Empty(t, line.Damage)
	return line
}

// requireReading requires that the line of a mailbox matches the result of Inspect. The mailbox may be
// damaged.
func requireReading(t testing.TB, s *survey.Survey, node *Repository, recipient domain.ActorID) *domain.Mailbox {
	t.Helper()
	ctx := context.Background()
	lines, err := s.Surveyed(ctx)
	require.NoError(t, err)
	line, ok := lines.Mailbox(recipient)
	require.True(t, ok, "%s has no line", recipient)
	queues, err := node.Queues(ctx, recipient)
	require.NoError(t, err)
	found := make(map[domain.Group]domain.MailboxGroup)
	for _, g := range line.Groups {
		found[g.Group] = g
	}
	for _, q := range queues {
		g := found[q.Group]
		require.Equal(t, q.Waiting, g.Waiting, "%s of %s", q.Group, recipient)
		open := domain.BundleID{}
		failures := 0
		if q.Open != nil {
			open = q.Open.ID
			require.WithinDuration(t, q.Open.Opened, g.Opened, 1e6)
			if q.Open.LacksContent() {
				failures = q.Open.ContentFailure.Failures
			}
		}
		require.Equal(t, open, g.Open)
		require.Equal(t, failures, g.Failures)
		require.Equal(t, failures == 0, g.FailingSince.IsZero())
	}
	in, err := node.Inspect(ctx, recipient)
	require.NoError(t, err)
	require.Equal(t, in.Frozen, line.Frozen)
	for _, g := range in.Groups {
		require.Equal(t, g.Waiting, found[g.Group].Waiting.Events)
	}
	return &line
}

func TestSurvey_LineFollowsSavePeekAndDequeue(t *testing.T) {
	r := newRig(t, embedded.Options{})
	node := r.node(Options{Exclusive: true, TailEvents: DefaultTailEvents}, false)
	ctx := context.Background()
	before, after := repositorytest.NewActor(), repositorytest.NewActor()
	_, err := node.Save(ctx, before, repositorytest.Events(3, before))
	require.NoError(t, err)
	s := surveyOf(r, node, survey.Options{Exclusive: true})
	lines, err := s.Surveyed(ctx)
	require.NoError(t, err)
	require.Zero(t, lines.At())
	runRound(t, s)
	line := requireLine(t, s, node, before)
	require.Equal(t, domain.MailboxWaiting, line.State())

	_, err = node.Save(ctx, after, repositorytest.Events(2, after))
	require.NoError(t, err)
	b, err := repositorytest.Peek(ctx, r.stores(node), before, allGroups, domain.BundleID{})
	require.NoError(t, err)
	runRound(t, s)
	require.Equal(t, domain.MailboxOpen, requireLine(t, s, node, before).State())
	require.Equal(t, domain.MailboxWaiting, requireLine(t, s, node, after).State())

	_, err = node.Acknowledge(ctx, before, b.ID)
	require.NoError(t, err)
	runRound(t, s)
	line = requireLine(t, s, node, before)
	require.Equal(t, domain.MailboxEmpty, line.State())
	require.False(t, line.LastDequeue().IsZero())
	require.WithinDuration(t, b.Opened, line.LastPeek(), 1e6)
}

// waitInBubble waits for a period of simulated time.
func waitInBubble(d time.Duration) { <-time.After(d) }
