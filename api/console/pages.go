package console

import (
	"net/http"
	"strings"

	"github.com/messagehub/messagehub/api/identity"
)

const (
	root = "/console"

	get  = http.MethodGet
	post = http.MethodPost
)

// A page is what is served at one path.
type page struct {
	method, path string        // path is below root
	role         identity.Role // that an operator needs; "": also for requests without a session
	serve        func(*visit) error
}

// isFragment reports whether the page is a part of another one, which htmx fetches again and again. Such
// requests do not keep a session alive.
func (p *page) isFragment() bool { return strings.HasPrefix(p.path, "/part/") }

// The roles of operators.
const (
	look  = identity.RoleOperatorRead
	order = identity.RoleOperator
)

// pages is the table of all pages. A path with POST also has GET, which shows the form; so a form
// whose session has ended can be shown again.
var pages []page

func init() { // pages refer to the table, by the navigation
	pages = []page{
		{get, "/", look, (*visit).overview},
		{get, "/part/rates", look, (*visit).ratesPart},
		{get, "/sample", order, (*visit).showSample},
		{post, "/sample", order, (*visit).sendSample},

		{get, "/mailboxes", look, (*visit).mailboxes},
		{get, "/mailboxes/{actor}", look, (*visit).mailbox},
		{get, "/mailboxes/{actor}/records", look, (*visit).records},
		{get, "/mailboxes/{actor}/orders/{order}", order, (*visit).giveOrder},
		{post, "/mailboxes/{actor}/orders/{order}", order, (*visit).giveOrder},

		{get, "/find", look, (*visit).find},

		{get, "/dead-letters", look, (*visit).deadLetterQueues},
		{get, "/dead-letters/{queue}", look, (*visit).deadLetters},
		{get, "/dead-letters/{queue}/records", look, (*visit).deadLetterRecords},
		{get, "/dead-letters/{queue}/some/{order}", order, (*visit).orderDeadLetters},
		{post, "/dead-letters/{queue}/some/{order}", order, (*visit).orderDeadLetters},
		{get, "/dead-letters/{queue}/letters/{number}/{order}", order, (*visit).orderDeadLetter},
		{post, "/dead-letters/{queue}/letters/{number}/{order}", order, (*visit).orderDeadLetter},

		{get, "/check", look, (*visit).showCheck},
		{post, "/check", order, (*visit).startCheck},
		{get, "/part/check", look, (*visit).checkPart},
		{get, "/configuration", look, (*visit).configuration},

		{get, "/sign-in", "", (*visit).showSignIn},
		{post, "/sign-in", "", (*visit).signIn},
		{get, "/sign-in/start", "", (*visit).startSignIn},
		{get, callbackPath, "", (*visit).finishSignIn},
		{get, "/sign-out", look, (*visit).showSignOut},
		{post, "/sign-out", look, (*visit).signOut},
	}
}

// An entry is a link of the navigation.
type entry struct{ path, name string }

// navigation are the links at the top of each page.
var navigation = []entry{
	{"/", "Overview"},
	{"/mailboxes", "Mailboxes"},
	{"/find", "Find"},
	{"/dead-letters", "Dead letters"},
	{"/check", "Check"},
	{"/configuration", "Configuration"},
}
