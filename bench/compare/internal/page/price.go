package page

import (
	"fmt"
	"slices"
	"strings"

	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/report"
)

// The published prices of Azure Cosmos DB for an account in one US region (not US
// Government), as in the billing examples:
// https://learn.microsoft.com/azure/cosmos-db/understand-your-bill
const (
	serverless  = 0.25  // USD per million request units
	provisioned = 0.008 // USD per hour for 100 request units per second
)

// provisionedMillion is the price in USD of a million request units in a container whose throughput
// is fully used.
const provisionedMillion = provisioned / (100 * 3600) * 1e6

// priceList returns the price list, or "" if there are no prices. It has a row for each curve
// of bars in request units per event; the bars add up to the cost of an event from Save to
// cleanup.
func priceList(curves []figure.Curve) string {
	curves = slices.DeleteFunc(slices.Clone(curves), func(c figure.Curve) bool {
		return c.Plot != figure.Bars || c.Unit != figure.PerEvent
	})
	if len(curves) == 0 {
		return ""
	}
	parts := labelsOf(curves)
	var b strings.Builder
	fmt.Fprintf(&b, pricesHeading+"\n\nRequest units per event from Save to cleanup, and the price of a million events at the\n"+
		"[published prices](https://learn.microsoft.com/azure/cosmos-db/understand-your-bill): %s USD per million request units\n"+
		"serverless, or %s USD per hour for each 100 provisioned request units per second if all of them are used; with half of\n"+
		"them used, the price is twice as high. Storage is not included.\n\n", report.FormatNumber(serverless), report.FormatNumber(provisioned))
	fmt.Fprintf(&b, "| scenario | layout | %s | sum | a million, serverless | provisioned |\n", strings.Join(parts, " | "))
	b.WriteString("| --- | --- |" + strings.Repeat(" ---: |", len(parts)+3) + "\n")
	for _, c := range curves {
		units := make([]string, len(parts))
		life := 0.0
		for _, p := range c.Points {
			units[slices.Index(parts, p.Label)] = report.FormatNumber(p.Y)
			life += p.Y
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s RU | %s USD | %s USD |\n", tableCell(c.Scenario), tableCell(c.Name), strings.Join(units, " | "),
			report.FormatNumber(life), report.FormatNumber(life*serverless), report.FormatNumber(life*provisionedMillion))
	}
	return b.String()
}
