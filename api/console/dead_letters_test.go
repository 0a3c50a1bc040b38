package console_test

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/deadletters"
)

// A queueBus is a bus with the dead letters of one queue.
type queueBus struct {
	mu      sync.Mutex
	letters []deadletters.Content
	resent  []int64
	failure error
}

// newQueueBus returns a bus with three dead letters. Two of them have the reason undecodable.
func newQueueBus() *queueBus {
	b := &queueBus{}
	for i, reason := range []string{"undecodable", "expired", "undecodable"} {
		b.letters = append(b.letters, deadletters.Content{
			DeadLetter: deadletters.DeadLetter{
				Number: int64(i + 1), MessageID: "message-<b>", Reason: reason, Description: `a "description" <script>`,
				EnqueuedAt: time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC), DeliveryCount: 10, Size: 20,
			},
			Body: []byte(`{"id":"<script>alert(1)</script>"}`), Properties: map[string]string{"b": "2", "a": "<i>"},
		})
	}
	return b
}

func (b *queueBus) Peek(_ context.Context, _ string, after int64, limit int) (found []deadletters.DeadLetter, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.letters {
		if b.letters[i].Number > after && len(found) < limit {
			found = append(found, b.letters[i].DeadLetter)
		}
	}
	return found, b.failure
}

func (b *queueBus) Read(_ context.Context, _ string, number int64) (*deadletters.Content, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.letters {
		if b.letters[i].Number == number {
			return &b.letters[i], nil
		}
	}
	return nil, domain.Errorf(domain.NotFound, "no dead letter %d", number)
}

func (b *queueBus) Resend(ctx context.Context, queue string, numbers []int64, _ string) (int, error) {
	b.mu.Lock()
	b.resent = append(b.resent, numbers...)
	b.mu.Unlock()
	return b.Delete(ctx, queue, numbers)
}

func (b *queueBus) Delete(_ context.Context, _ string, numbers []int64) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := len(b.letters)
	b.letters = slices.DeleteFunc(b.letters, func(c deadletters.Content) bool { return slices.Contains(numbers, c.Number) })
	return before - len(b.letters), nil
}

func (b *queueBus) Count(string) (int64, bool) { return int64(len(b.letters)), true }

const letterPath = "/console/dead-letters/events/letters/1/"

func TestDeadLetters_AreListedByReason(t *testing.T) {
	b := openSignedIn(t)
	require.Contains(t, b.get("/console/dead-letters").wants(http.StatusOK).text(), "events 3 events of domains")
	a := b.get("/console/dead-letters/events").wants(http.StatusOK)
	require.Contains(t, a.text(), `1 undecodable a "description" <script> 2026-11-27T08:00:00Z message-<b> 20 10 Look Send again Delete`)
	require.NotContains(t, a.body, "<script>")
	require.NotContains(t, a.text(), "Send these again")
	a = b.get("/console/dead-letters/events?reason=undecodable").wants(http.StatusOK)
	require.NotContains(t, a.text(), "expired")
	require.Contains(t, a.text(), "Send these again")
	b.get("/console/dead-letters/other").wants(http.StatusNotFound)
	b.get("/console/dead-letters/events?after=x").wants(http.StatusBadRequest)
	b.bus.failure = domain.Errorf(domain.Unavailable, "the bus is away")
	require.Contains(t, b.get("/console/dead-letters/events").wants(http.StatusServiceUnavailable).text(), "the bus is away")
}

func TestDeadLetter_IsShownAfterTheViewIsRecorded(t *testing.T) {
	b := openSignedIn(t)
	page := b.get(letterPath + "look").wants(http.StatusOK)
	require.NotContains(t, page.body, "alert(1)")
	form := page.form(letterPath + "look")
	require.False(t, form.Has("typed"))
	b.post(letterPath+"look", form).wants(http.StatusUnprocessableEntity) // the submitted form contains no reason
	form.Set("why", "its sender asks")
	a := b.post(letterPath+"look", form).wants(http.StatusOK)
	require.Contains(t, a.text(), `"id": "<script>alert(1)</script>"`)
	require.NotContains(t, a.body, "<script>alert")
	require.Contains(t, a.text(), "a <i> b 2")
	require.Contains(t, b.get("/console/dead-letters/events/records").text(), "look admin.token (Kim) its sender asks number 1, message message-<b> done 1")
}

func TestDeadLetter_IsSentAgainOrDeletedWithAReason(t *testing.T) {
	b := openSignedIn(t)
	order := func(path string, query string) *pageAnswer {
		form := b.get(path + query).wants(http.StatusOK).form(path)
		form.Set("why", "repaired")
		form.Set("typed", "other")
		b.post(path, form).wants(http.StatusUnprocessableEntity)
		form.Set("typed", "events")
		return b.post(path, form)
	}
	a := order(letterPath+"resend", "").wants(http.StatusSeeOther)
	require.Contains(t, b.get(a.header.Get("Location")).text(), "The order was carried out.")
	require.Equal(t, []int64{1}, b.bus.resent)
	b.get(letterPath + "resend").wants(http.StatusConflict)
	order("/console/dead-letters/events/letters/2/delete", "").wants(http.StatusSeeOther)
	some := "/console/dead-letters/events/some/resend"
	order(some, "?reason=undecodable&after=0&through=3").wants(http.StatusSeeOther)
	require.Equal(t, []int64{1, 3}, b.bus.resent)
	b.get(some + "?reason=undecodable&after=0&through=3").wants(http.StatusConflict)
	b.get(some + "?reason=undecodable").wants(http.StatusBadRequest)
	b.get("/console/dead-letters/events/letters/x/look").wants(http.StatusNotFound)
}

func TestDeadLetter_ThatNoLongerExistsIsNotResent(t *testing.T) {
	b := openSignedIn(t)
	form := b.get(letterPath + "resend").form(letterPath + "resend")
	form.Set("why", "repaired")
	form.Set("typed", "events")
	b.post(letterPath+"resend", form).wants(http.StatusSeeOther)
	require.Contains(t, b.post(letterPath+"resend", form).wants(http.StatusConflict).text(), "The dead letter is not there")
	require.Equal(t, []int64{1}, b.bus.resent)
}

func TestDeadLetters_OfSomeQueuesAreNotSentAgain(t *testing.T) {
	b := openSignedIn(t)
	a := b.get("/console/dead-letters/" + url.PathEscape("replies")).wants(http.StatusOK)
	require.Contains(t, a.text(), "are not sent again: no request waits")
	require.False(t, strings.Contains(a.text(), "Send again"))
}
