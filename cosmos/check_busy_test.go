package cosmos

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// isQueryWith reports whether req is a query whose text has all the given words.
func isQueryWith(req *http.Request, words ...string) bool {
	if !isQuery(req) {
		return false
	}
	body := bodyOf(req)
	for _, w := range words {
		if !strings.Contains(body, w) {
			return false
		}
	}
	return true
}

// The state of a queue in use changes between any two reads of a check. Such changes are not damage.
func TestCheck_FindsNothingInAQueueInUse(t *testing.T) {
	for name, before := range map[string]func(*http.Request) bool{
		"before the notices are read":      func(req *http.Request) bool { return isQueryWith(req, noticeKind) },
		"before the gates are read":        func(req *http.Request) bool { return isQueryWith(req, gateKind) },
		"before the open bundles are read": func(req *http.Request) bool { return isQueryWith(req, "c.state = @open") },
		"before the drawers are read":      func(req *http.Request) bool { return isQueryWith(req, "c.ordinal ", "@from") },
		"before the pages are read":        func(req *http.Request) bool { return isQueryWith(req, "c.until ", "@from") },
		"before the entries are read":      func(req *http.Request) bool { return isQueryWith(req, "SELECT * FROM c\"") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTrust(t)
				user := s.node(Options{DrawerCapacity: 2, Retention: 1}, false)
				s.save(user, 0, repositorytest.Events(3, s.actor))
				s.dequeueNext(user)
				s.save(user, 0, repositorytest.Events(3, s.actor, repositorytest.WithoutBundling))
				_, err := repositorytest.Peek(t.Context(), s.stores(user), s.actor, allGroups, domain.BundleID{})
				require.NoError(t, err)

				moves := 0
				var moving atomic.Bool
				checker, line := s.tappedNode(Options{DrawerCapacity: 2})
				line.setBefore(func(req *http.Request) error {
					if !before(req) || !moving.CompareAndSwap(false, true) {
						return nil
					}
					defer moving.Store(false)
					moves++
					s.save(user, 0, repositorytest.Events(1, s.actor, repositorytest.WithoutBundling))
					for range 5 {
						if _, err := user.NextUnacknowledged(context.Background(), s.actor, allGroups); err != nil {
							require.ErrorIs(t, err, domain.ErrNoData)
							break
						}
						b := s.openOnRequest(user)
						if b.IsUnanswered() {
							s.answerBundle(user, b.ID, "made")
						}
						_, err := user.Acknowledge(context.Background(), s.actor, b.ID)
						require.NoError(t, err)
					}
					if moves%3 == 0 {
						_, err := repositorytest.DrainNotices(context.Background(), s.stores(user), s.actor)
						require.NoError(t, err)
					}
					s.save(user, 0, repositorytest.Events(1, s.actor, repositorytest.WithoutBundling))
					s.openOnRequest(user)
					_, err := user.Sweep(context.Background())
					require.NoError(t, err)
					return nil
				})
				report, err := checker.Check(t.Context(), CheckOptions{Recipient: s.actor})
				require.NoError(t, err)
				require.Positive(t, moves)
				require.Empty(t, report.Findings)
				require.NoError(t, s.repairMailbox(s.actor))
			})
		})
	}
}
