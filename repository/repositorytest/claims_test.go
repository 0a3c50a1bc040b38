package repositorytest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClaims_SelectRules(t *testing.T) {
	all := []topic{
		{"Save", []contractRule{{name: "one"}, {name: "two"}, {name: "three"}}},
		{"Next", []contractRule{{name: "one"}, {name: "more"}}},
	}
	for _, tc := range []struct {
		name   string
		claims []string
		want   []string
		fails  string
	}{
		{name: "without claims, no rule is chosen"},
		{name: "a topic is all its rules", claims: []string{"Save"}, want: []string{"Save/one", "Save/two", "Save/three"}},
		{name: "rules keep their order", claims: []string{"Next/more", "Save/three", "Save/one"}, want: []string{"Save/one", "Save/three", "Next/more"}},
		{name: "a minus excludes a rule", claims: []string{"Save", "-Save/two"}, want: []string{"Save/one", "Save/three"}},
		{name: "an unknown topic fails", claims: []string{"Save", "Saves"}, fails: `claim "Saves": there is no such`},
		{name: "an unknown rule fails", claims: []string{"Save/four"}, fails: `claim "Save/four": there is no such`},
		{name: "a rule of another topic fails", claims: []string{"Save/more"}, fails: "there is no such"},
		{name: "an unknown rule cannot be excluded", claims: []string{"Save", "-Save/four"}, fails: `claim "-Save/four": there is no such`},
		{name: "a rule that was not claimed cannot be excluded", claims: []string{"Next", "-Save/one"}, fails: "says nothing"},
		{name: "a rule that is claimed twice fails", claims: []string{"Save", "Save/one"}, fails: "says nothing"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			topics, err := selectClaimed(all, tc.claims)
			if tc.fails != "" {
				require.ErrorContains(t, err, tc.fails)
				return
			}
			require.NoError(t, err)
			var got []string
			for _, topic := range topics {
				for _, r := range topic.rules {
					got = append(got, topic.name+"/"+r.name)
				}
			}
			require.Equal(t, tc.want, got)
		})
	}
	require.Len(t, all[0].rules, 3, "the suite itself stays whole")
	require.Equal(t, "two", all[0].rules[1].name)
}
