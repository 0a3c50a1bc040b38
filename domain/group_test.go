package domain_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

func TestDefaultGroups_AreTheGroupsOfTheMarket(t *testing.T) {
	groups := domain.DefaultGroups()
	for o, want := range map[domain.Origin]string{
		domain.TimeSeries:     "timeseries",
		domain.Aggregations:   "aggregations",
		domain.MarketRoles:    "masterdata",
		domain.MeteringPoints: "masterdata",
		domain.Charges:        "masterdata",
	} {
		got, err := groups.GroupOf(o)
		require.NoError(t, err)
		require.Equal(t, want, got.String(), "group of %s", o)
	}
	require.Equal(t, []domain.Group{group("aggregations"), group("masterdata"), group("timeseries")}, groups.All(), "each group once, ordered by name")
	require.Equal(t, []domain.Origin{
		domain.Aggregations, domain.Charges, domain.MarketRoles, domain.MeteringPoints, domain.TimeSeries,
	}, groups.Origins(), "by name")
}

func TestGroupsWith_SetsTheGroupOfAnOrigin(t *testing.T) {
	weather, prices := origin("Weather"), origin("Prices")
	market := domain.DefaultGroups()
	for _, tc := range []struct {
		name   string
		groups domain.Groups
		of     domain.Origin
		want   string
	}{
		{"adds an origin to an existing group", market.With(weather, group("timeseries")), weather, "timeseries"},
		{"adds a group", market.With(weather, group("forecasts")), weather, "forecasts"},
		{"creates a group for an origin without a group", market.With(weather, domain.Group{}), weather, "Weather"},
		{"moves an existing origin", market.With(domain.Charges, group("charges")), domain.Charges, "charges"},
		{"does not change other origins", market.With(domain.Charges, group("charges")), domain.MarketRoles, "masterdata"},
		{"applies the last call", market.With(weather, group("a")).With(weather, group("b")), weather, "b"},
		{"works on the zero Groups", domain.Groups{}.With(weather, group("forecasts")), weather, "forecasts"},
		{"adds two origins to one group", domain.Groups{}.With(weather, group("x")).With(prices, group("x")), prices, "x"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tc.groups.GroupOf(tc.of)
			require.NoError(t, err)
			require.Equal(t, tc.want, got.String())
			found, err := tc.groups.Find(tc.want)
			require.NoError(t, err)
			require.Equal(t, got, found)
		})
	}
}

func TestGroupsWith_ChangesOnlyTheCopy(t *testing.T) {
	market := domain.DefaultGroups()
	market.With(origin("Weather"), group("forecasts")).With(domain.Charges, group("charges"))
	require.Equal(t, domain.DefaultGroups(), market)
}

func TestGroupsWith_RemovesAnEmptyGroup(t *testing.T) {
	_, err := domain.DefaultGroups().With(domain.TimeSeries, group("masterdata")).Find("timeseries")
	requireInvalid(t, err, `group: "timeseries" is unknown here; known are aggregations, masterdata`)
}

func TestGroupOf_NamesTheKnownOrigins(t *testing.T) {
	_, err := domain.DefaultGroups().GroupOf(origin("Weather"))
	requireInvalid(t, err, `origin: "Weather" is unknown here; known are Aggregations, Charges, MarketRoles, MeteringPoints, TimeSeries`)
	_, err = domain.DefaultGroups().GroupOf(origin("timeseries"))
	require.Error(t, err, "case matters")
}

func TestGroupsFind_NamesTheKnownGroups(t *testing.T) {
	for _, tc := range []struct{ name, text, quoted string }{
		{"another word", "weather", `"weather"`},
		{"the name of an origin", "TimeSeries", `"TimeSeries"`},
		{"empty text", "", `""`},
		{"text that is not a valid name", "a\n/b", `"a\n/b"`},
		{"long text is shortened", strings.Repeat("x", 99), `"` + strings.Repeat("x", 64) + `…"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := domain.DefaultGroups().Find(tc.text)
			requireInvalid(t, err, `group: `+tc.quoted+` is unknown here; known are aggregations, masterdata, timeseries`)
			require.Zero(t, got)
		})
	}
}
