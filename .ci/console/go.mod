// The tests of the console in a browser, in a module of their own, so that the hub's go.mod lists only
// what the hub is made of. Run them from the top of the tree:
//
//	make test-console
module github.com/messagehub/messagehub/.ci/console

go 1.26.0

require (
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.22.1
)

require github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
