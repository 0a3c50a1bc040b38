package repositorytest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// RunOnly tests an implementation that fulfills only the rules in claims. A claim is a topic with all
// its rules, such as "Save", or one rule of a topic, such as "Save/to save no events is valid and
// changes nothing". A claim that begins with a minus excludes rules that earlier claims include; it
// should have a comment with the reason. A claim that matches no rule, or has no effect, fails the test.
// Stores may lack the ports of topics without claims.
func RunOnly(t *testing.T, open func(t *testing.T, o Options) Stores, claims ...string) {
	claimed, err := selectClaimed(topics, claims)
	if err != nil {
		t.Fatal(err)
	}
	run(t, claimed, open)
}

// selectClaimed returns the topics in all, in the same order, with only the rules that claims select.
func selectClaimed(all []topic, claims []string) ([]topic, error) {
	chosen := make(map[string]bool)
	for _, claim := range claims {
		name, back := strings.CutPrefix(claim, "-")
		found, changed := false, false
		for _, topic := range all {
			for _, r := range topic.rules {
				rule := topic.name + "/" + r.name
				if name == topic.name || name == rule {
					found = true
					changed = changed || chosen[rule] == back
					chosen[rule] = !back
				}
			}
		}
		switch {
		case !found:
			return nil, fmt.Errorf("claim %q: there is no such topic or rule", claim)
		case !changed:
			return nil, fmt.Errorf("claim %q: it says nothing that the ones before it have not said", claim)
		}
	}
	var left []topic
	for _, t := range all {
		t.rules = slices.Clone(t.rules)
		t.rules = slices.DeleteFunc(t.rules, func(r contractRule) bool { return !chosen[t.name+"/"+r.name] })
		if len(t.rules) > 0 {
			left = append(left, t)
		}
	}
	return left, nil
}
