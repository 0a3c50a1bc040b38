package broker

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/messagehub/messagehub/api/internal/query"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
)

// Default and maximum of the query parameter delay.
const (
	defaultDelay = 2 * time.Second
	maxDelay     = 24 * time.Hour
)

func (e *edge) listOverdue(w http.ResponseWriter, r *http.Request, creds *broker.Credentials) error {
	if err := creds.RequireAdmin(); err != nil {
		return err
	}
	values, err := query.Parse(r, "delay", "first")
	if err != nil {
		return err
	}
	q := broker.OverdueQuery{Delay: defaultDelay}
	if values.Has("delay") {
		if q.Delay, err = time.ParseDuration(values.Get("delay")); err != nil || q.Delay < 0 || q.Delay > maxDelay {
			return domain.Errorf(domain.Invalid, "delay: want a time of 0s to 24h, such as 2s, got %q", domain.Shorten(values.Get("delay")))
		}
	}
	if values.Has("first") {
		if q.First, err = parseOverduePlace(values.Get("first")); err != nil {
			return err
		}
	}
	jobs, next, more, err := e.service.Overdue(r.Context(), creds, q)
	if err != nil {
		return err
	}
	answer := struct {
		Jobs []jobDocument `json:"jobs"`
		Next string        `json:"next,omitempty"`
	}{Jobs: make([]jobDocument, len(jobs))}
	for i := range jobs {
		jobs[i].History = nil // the history of a job is omitted to limit the size of the list
		answer.Jobs[i] = documentOfJob(&jobs[i])
		answer.Jobs[i].Channel = jobs[i].Consumer.Channel().String()
	}
	if more {
		p := listPage{values: values}
		answer.Next = p.nextPath("/broker/overdue", formatOverduePlace(next))
	}
	writeJSON(w, http.StatusOK, time.Time{}, answer)
	return nil
}

// formatOverduePlace encodes p, the position of a page's first job, as text.
func formatOverduePlace(p broker.OverduePosition) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(p.Shard) + " " + p.Cursor))
}

func parseOverduePlace(text string) (p broker.OverduePosition, err error) {
	plain, err := base64.RawURLEncoding.DecodeString(text)
	shard, cursor, isPlace := strings.Cut(string(plain), " ")
	if err == nil && isPlace {
		p.Cursor = cursor
		p.Shard, err = strconv.Atoi(shard)
	}
	if err != nil || !isPlace || p.Shard < 0 {
		return p, domain.Errorf(domain.Invalid, "first: want the next of the previous page, got %q", domain.Shorten(text))
	}
	return p, nil
}
