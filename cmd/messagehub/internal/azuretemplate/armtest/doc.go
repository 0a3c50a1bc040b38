// Package armtest evaluates templates of Azure Resource Manager in tests,
// without Azure: it returns the resources that a deployment would create, with
// their properties, and the outputs of the deployment.
//
// It supports only the functions that the project's templates use. It has no
// schemas of resources, so it cannot detect a property that Azure rejects. Evaluate fails if
// the template names a parameter, a function or a resource that does not exist,
// uses a resource that it does not depend on, or has a parameter that nothing
// uses. Its names and ids differ from those of Azure; two of its names are equal
// only if the names of Azure are equal.
package armtest
