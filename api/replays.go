package api

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"github.com/messagehub/messagehub/api/internal/eventjson"
	"github.com/messagehub/messagehub/api/internal/pathparam"
	"github.com/messagehub/messagehub/api/internal/query"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/replay"
)

// requireReplays refuses requests if the hub has no store for subscriptions.
func (s *Server) requireReplays(next http.Handler) http.Handler {
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		if s.opts.Replays == nil {
			return &problemError{problem: notProvisioned}
		}
		next.ServeHTTP(w, r)
		return nil
	})
}

// replayDelivery delivers one message again.
func (s *Server) replayDelivery(w http.ResponseWriter, r *http.Request) error {
	if _, err := query.Parse(r); err != nil {
		return err
	}
	id, err := domain.ParseDeliveryID(pathparam.Value(r, "deliveryId"))
	if err != nil {
		return err
	}
	recordOf(r.Context()).note(slog.String("delivery", id.String()))
	if err := s.opts.Replays.ReplayOne(r.Context(), actorOf(r.Context()), id); err != nil {
		return err
	}
	writeJSON(w, http.StatusAccepted, struct {
		ID string `json:"id"`
	}{id.String()})
	return nil
}

// A replayDocument is the JSON of a replay's progress.
type replayDocument struct {
	ID        string    `json:"id"`
	State     string    `json:"state"`
	From      time.Time `json:"from"`
	To        time.Time `json:"to"`
	Filter    string    `json:"filter,omitempty"`
	Of        string    `json:"of"`
	Rate      int       `json:"rate"`
	Seen      int64     `json:"seen"`
	Matched   int64     `json:"matched"`
	Skipped   int64     `json:"skipped"`
	Remaining int64     `json:"remaining"`
}

// Values of the member "of", which selects the messages of a replay.
const (
	ofDead = "dead"
	ofAll  = "all"
)

func documentOfReplay(p *replay.Progress) replayDocument {
	d := replayDocument{
		ID: p.ID, State: p.State, From: p.From.UTC(), To: p.To.UTC(), Filter: p.Filter, Of: ofAll, Rate: p.Rate,
		Seen: p.Seen, Matched: p.Matched, Skipped: p.Skipped, Remaining: p.Remaining,
	}
	if p.OnlyDead {
		d.Of = ofDead
	}
	return d
}

// startReplay starts the replay of a range. For a dry run, it only counts the messages.
func (s *Server) startReplay(w http.ResponseWriter, r *http.Request) error {
	if _, err := query.Parse(r); err != nil {
		return err
	}
	id, err := subscriptionID(r)
	if err != nil {
		return err
	}
	wanted, isDryRun, err := readReplay(w, r)
	if err != nil {
		return err
	}
	if isDryRun {
		count, err := s.opts.Replays.DryRun(r.Context(), actorOf(r.Context()), id, wanted)
		if err != nil {
			return asSubscriptionProblem(r.Context(), err)
		}
		writeJSON(w, http.StatusOK, struct {
			Matched  int64 `json:"matched"`
			Seen     int64 `json:"seen"`
			Complete bool  `json:"complete"`
		}{count.Matched, count.Seen, count.Complete})
		return nil
	}
	started, err := s.opts.Replays.Start(r.Context(), actorOf(r.Context()), id, wanted)
	if err != nil {
		return asSubscriptionProblem(r.Context(), err)
	}
	w.Header().Set("Location", "/v1/subscriptions/"+id.String()+"/replays/"+started.ID)
	writeJSON(w, http.StatusAccepted, documentOfReplay(started))
	return nil
}

func (s *Server) getReplay(w http.ResponseWriter, r *http.Request) error {
	if _, err := query.Parse(r); err != nil {
		return err
	}
	id, err := subscriptionID(r)
	if err != nil {
		return err
	}
	found, err := s.opts.Replays.Get(r.Context(), actorOf(r.Context()), id, pathparam.Value(r, "replayId"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, documentOfReplay(found))
	return nil
}

func (s *Server) stopReplay(w http.ResponseWriter, r *http.Request) error {
	if _, err := query.Parse(r); err != nil {
		return err
	}
	id, err := subscriptionID(r)
	if err != nil {
		return err
	}
	if err := s.opts.Replays.Stop(r.Context(), actorOf(r.Context()), id, pathparam.Value(r, "replayId")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// readReplay reads the range to replay from the body of a request.
func readReplay(w http.ResponseWriter, r *http.Request) (wanted domain.ReplayRange, isDryRun bool, err error) {
	text, err := readObject(w, r, maxDraft)
	if err != nil {
		return wanted, false, err
	}
	d := draftDecoder{}
	of := ofDead
	decode := func(pointer string, value []byte, want string, into any) {
		if string(value) == "null" || json.Unmarshal(value, into) != nil {
			d.report(pointer, "want "+want+", got "+eventjson.TypeOf(value))
		}
	}
	seen := make(map[string]bool)
	err = d.members("", text, func(name, pointer string, value []byte) {
		seen[name] = true
		switch name {
		case "from":
			decode(pointer, value, "a time as RFC 3339 has it", &wanted.From)
		case "to":
			decode(pointer, value, "a time as RFC 3339 has it", &wanted.To)
		case "filter":
			d.text(pointer, value, &wanted.Filter)
		case "of":
			if d.text(pointer, value, &of); of != ofDead && of != ofAll {
				d.report(pointer, "want dead or all")
			}
		case "rate":
			decode(pointer, value, "a whole number", &wanted.Rate)
			if wanted.Rate < 1 {
				d.report(pointer, "want at least 1")
			}
		case "dryRun":
			decode(pointer, value, "a boolean", &isDryRun)
		default:
			d.report(pointer, "unknown field; known are dryRun, filter, from, of, rate, to")
		}
	})
	if err != nil {
		return wanted, false, refuse(notJSON, "Nothing was stored: the body must be one JSON object. %v.", err)
	}
	for _, name := range []string{"from", "to"} {
		if !seen[name] {
			d.report("/"+name, "missing")
		}
	}
	if len(d.faults) > 0 {
		return wanted, false, badSubscription(d.faults)
	}
	wanted.OnlyDead = of == ofDead
	return wanted, isDryRun, nil
}
