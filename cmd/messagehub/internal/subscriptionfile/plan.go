package subscriptionfile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/domain"
)

// An Action says how a Step changes a subscription.
type Action string

// The actions.
const (
	Create Action = "create"
	Update Action = "update"
	Keep   Action = "keep"
	Pause  Action = "pause"
	Resume Action = "resume"
	Delete Action = "delete"
	Ignore Action = "not in the file"
)

// A Step changes one subscription of a hub.
type Step struct {
	Action Action
	ID     domain.SubscriptionID
	URL    string   // callback URL
	Why    []string // descriptions of the members that change

	Entry *Entry // Entry is set if Action is Create, Update or Keep

	// Sends reports whether the step sends Entry to the hub. An Entry with a
	// secret or headers is always sent: the hub does not return these values,
	// so only the hub can compare them.
	Sends bool
}

// Plan returns the steps that change the stored subscriptions into those of f,
// in the order in which they must run. It deletes subscriptions that f lacks
// only if prune is true. If Plan fails, the caller must change nothing.
func Plan(f *File, stored []*hubclient.Subscription, prune bool) ([]Step, error) {
	byID := make(map[domain.SubscriptionID]*hubclient.Subscription)
	for _, s := range stored {
		byID[s.ID] = s
	}
	var steps []Step
	var faults []error
	inFile := make(map[domain.SubscriptionID]bool)
	for i := range f.Subscriptions {
		e := &f.Subscriptions[i]
		inFile[e.ID] = true
		more, err := planEntry(e, byID[e.ID])
		if err != nil {
			faults = append(faults, fmt.Errorf("line %d: subscription %s: %w", e.line, e.ID, err))
		}
		steps = append(steps, more...)
	}
	if prune && len(f.Subscriptions) == 0 {
		faults = append(faults, errors.New("the file has no subscriptions, so --prune would delete all subscriptions; delete them one by one"))
	}
	for _, s := range stored {
		if inFile[s.ID] {
			continue
		}
		step := Step{Action: Ignore, ID: s.ID, URL: s.CallbackURL}
		if prune {
			step.Action = Delete
		}
		steps = append(steps, step)
	}
	return steps, errors.Join(faults...)
}

// planEntry returns the steps that change the stored subscription s into e. If
// the hub has no subscription with that id, s is nil.
func planEntry(e *Entry, s *hubclient.Subscription) ([]Step, error) {
	step := Step{Action: Keep, ID: e.ID, URL: e.Draft.CallbackURL, Entry: e}
	isPaused := false
	if s == nil {
		step.Action, step.Sends = Create, true
	} else {
		isPaused = s.Paused
		if s.Topic != e.Draft.Topic {
			return nil, fmt.Errorf("topic: it is %s, and cannot be changed; use another uuid", s.Topic)
		}
		step.Why = differingMembers(&s.Subscription, &e.Draft)
		if e.Secret != nil && *e.Secret == "" && s.Signed {
			step.Why = append(step.Why, "hmac_secret_key is removed")
		}
		hasKey := e.Secret != nil && *e.Secret != ""
		if hasKey && !s.Signed {
			step.Why = append(step.Why, "hmac_secret_key is added")
		}
		if want := slices.Sorted(maps.Keys(e.Headers)); e.Headers != nil && !slices.Equal(want, s.HeaderNames) {
			step.Why = append(step.Why, changeText("headers", strings.Join(s.HeaderNames, " "), strings.Join(want, " ")))
		}
		if len(step.Why) > 0 {
			step.Action = Update
		}
		step.Sends = len(step.Why) > 0 || hasKey || len(e.Headers) > 0
		if step.Sends && len(s.Unknown) > 0 {
			return nil, fmt.Errorf("the subscription has %s, which this version does not know and would remove; use a newer messagehub", strings.Join(s.Unknown, ", "))
		}
	}
	if e.Paused == nil || *e.Paused == isPaused {
		return []Step{step}, nil
	}
	if *e.Paused && s != nil { // paused before the update, so that the hub does not call the new URL
		return []Step{{Action: Pause, ID: e.ID, URL: s.CallbackURL}, step}, nil
	}
	action := Resume
	if *e.Paused {
		action = Pause
	}
	return []Step{step, {Action: action, ID: e.ID, URL: e.Draft.CallbackURL}}, nil
}

// differingMembers describes each member in which two subscriptions differ.
func differingMembers(is, want *domain.Subscription) []string {
	var all []string
	for _, member := range []struct{ name, is, want string }{
		{"callback_url", is.CallbackURL, want.CallbackURL},
		{"method", is.Method, want.Method},
		{"encoding", is.Encoding, want.Encoding},
		{"form_fields", joinValues(is.FormFields), joinValues(want.FormFields)},
		{"payload_form_field", is.PayloadFormField, want.PayloadFormField},
		{"hmac_key_id", is.HMACKeyID, want.HMACKeyID},
		{"jmespath_query", is.Filter, want.Filter},
		{"attachments", joinValues(is.Attachments), joinValues(want.Attachments)},
		{"delivery", modeOf(is), modeOf(want)},
		{"max_rate", formatLimit(is.MaxRate), formatLimit(want.MaxRate)},
		{"max_concurrency", formatLimit(float64(is.MaxConcurrency)), formatLimit(float64(want.MaxConcurrency))},
		{"ordered", strconv.FormatBool(is.IsOrdered), strconv.FormatBool(want.IsOrdered)},
	} {
		if member.is != member.want {
			all = append(all, changeText(member.name, member.is, member.want))
		}
	}
	return all
}

func changeText(name, is, want string) string {
	return fmt.Sprintf("%s: %s → %s", name, textOrNothing(is), textOrNothing(want))
}

func modeOf(s *domain.Subscription) string {
	if s.IsSync {
		return syncDelivery
	}
	return asyncDelivery
}

// formatLimit formats a limit as text. It returns "" for 0, which means no
// limit.
func formatLimit(n float64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

func joinValues(values map[string]string) string {
	texts := make([]string, 0, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		texts = append(texts, fmt.Sprintf("%q=%q", name, values[name]))
	}
	return strings.Join(texts, " ")
}

func textOrNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}
