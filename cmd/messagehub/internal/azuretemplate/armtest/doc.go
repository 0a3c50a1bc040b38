// Package armtest evaluates templates of Azure Resource Manager in tests,
// without Azure: which resources a deployment would create, with which
// properties, and what it would return.
//
// It knows the functions that the project's templates use, and no schemas of
// resources: it cannot say whether Azure accepts a property. Evaluate fails if
// the template names a parameter, a function or a resource that does not exist,
// uses a resource that it does not depend on, or has a parameter that nothing
// uses. Names and ids that Azure would compute have other values, but they
// differ where those of Azure differ.
package armtest
