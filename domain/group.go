package domain

import (
	"cmp"
	"slices"
	"strings"
)

// A Group is a set of origins that share one open bundle: an actor has at most
// one undequeued bundle in each group.
type Group struct{ s string }

// ParseGroup accepts the texts that ParseActorID accepts. It does not check whether the hub knows
// the group: see Groups.Find.
func ParseGroup(s string) (Group, error) {
	if err := checkName("group", s); err != nil {
		return Group{}, err
	}
	return Group{s}, nil
}

// String returns the name of the group.
func (g Group) String() string { return g.s }

// Groups contains the origins that a hub knows, and the group of each origin. An origin belongs to
// exactly one group.
type Groups struct{ byOrigin map[Origin]Group }

// DefaultGroups returns the groups of the energy market.
func DefaultGroups() Groups {
	masterdata := Group{"masterdata"}
	return Groups{map[Origin]Group{
		TimeSeries:     {"timeseries"},
		Aggregations:   {"aggregations"},
		MarketRoles:    masterdata,
		MeteringPoints: masterdata,
		Charges:        masterdata,
	}}
}

// With returns a copy of g in which origin belongs to group. If group is zero, the origin belongs
// to a separate group that is named after the origin.
func (g Groups) With(origin Origin, group Group) Groups {
	byOrigin := make(map[Origin]Group, len(g.byOrigin)+1)
	for o, x := range g.byOrigin {
		byOrigin[o] = x
	}
	byOrigin[origin] = cmp.Or(group, Group(origin))
	return Groups{byOrigin}
}

// GroupOf returns the group of origin. If the hub does not know the origin, it returns an Invalid error
// that names the known origins.
func (g Groups) GroupOf(origin Origin) (Group, error) {
	group, ok := g.byOrigin[origin]
	if !ok {
		return Group{}, Errorf(Invalid, "origin: %q is unknown here; known are %s", origin, joinNames(g.Origins()))
	}
	return group, nil
}

// Find returns the group called name. If the name is unknown, it returns an Invalid error that
// names the known groups.
func (g Groups) Find(name string) (Group, error) {
	if i := slices.Index(g.All(), Group{name}); i < 0 {
		return Group{}, Errorf(Invalid, "group: %q is unknown here; known are %s", Shorten(name), joinNames(g.All()))
	}
	return Group{name}, nil
}

// All returns the groups, sorted by name.
func (g Groups) All() []Group {
	var all []Group
	for _, group := range g.byOrigin {
		all = append(all, group)
	}
	slices.SortFunc(all, func(a, b Group) int { return strings.Compare(a.s, b.s) })
	return slices.Compact(all)
}

// Origins returns the origins, sorted by name.
func (g Groups) Origins() []Origin {
	all := make([]Origin, 0, len(g.byOrigin))
	for o := range g.byOrigin {
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b Origin) int { return strings.Compare(a.s, b.s) })
	return all
}

func joinNames[T interface{ String() string }](names []T) string {
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = n.String()
	}
	return strings.Join(texts, ", ")
}
