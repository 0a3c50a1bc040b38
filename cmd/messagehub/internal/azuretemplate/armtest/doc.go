// Package armtest evaluates templates of Azure Resource Manager in tests,
// without Azure: it returns the resources that a deployment would create, with
// their properties, and the outputs of the deployment.
//
// It supports only the functions that the project's templates use. It has no
// schemas of resources, so it cannot detect a property that Azure rejects.
// Evaluate fails if the template names an unknown parameter, function or
// resource, uses a resource without depending on it, or declares an unused
// parameter. Generated names and ids differ from those of Azure, but are equal
// only if Azure's would be equal.
package armtest
