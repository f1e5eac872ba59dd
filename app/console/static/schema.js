// From the JSON Schema of a form to the fields a reader fills in. What has no field of its own is
// written as JSON. Whether an answer fits is for the server to say, by the same schema.

const DEEPEST = 1; // a group within the form has fields of its own, one within a group is JSON
const LONG = 120; // letters; a text that may be longer gets several lines
const TYPES = { email: "email", "idn-email": "email", tel: "tel", phone: "tel", uri: "url", "uri-reference": "url" };

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const own = (object, name) => (isObject(object) && Object.hasOwn(object, name) ? object[name] : undefined);

/** Follows a reference within the schema itself; any other leads nowhere. */
function pointed(root, reference) {
  if (typeof reference !== "string" || !reference.startsWith("#")) return {};
  const steps = reference.slice(1).split("/").slice(1).map((step) => decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~"));
  return steps.reduce((found, step) => own(found, step), root) ?? {};
}

const isNull = (schema) => own(schema, "type") === "null";

/** One plain schema in the place of references, of "this or nothing" and of a single part. */
function plain(schema, root, depth = 0) {
  if (!isObject(schema) || depth > 8) return {};
  const { $ref, anyOf, oneOf, allOf, ...rest } = schema;
  const parts = (Array.isArray(anyOf) && anyOf) || (Array.isArray(oneOf) && oneOf) || (Array.isArray(allOf) && allOf) || [];
  const left = parts.filter((part) => !isNull(part));
  if ($ref !== undefined) return { ...plain(pointed(root, $ref), root, depth + 1), ...rest };
  if (left.length === 1) return { ...plain(left[0], root, depth + 1), ...rest };
  if (parts.length > 0) return { ...rest, type: undefined, several: true };
  if (!Array.isArray(schema.type)) return schema;
  const types = schema.type.filter((type) => type !== "null");
  return types.length === 1 ? { ...schema, type: types[0] } : { ...schema, type: undefined };
}

const words = (value) => (typeof value === "string" ? value : null);
const shown = (value) => (typeof value === "string" ? value : JSON.stringify(value));

function textKind(schema) {
  if (schema.format === "date") return { kind: "date" };
  const letters = schema.maxLength ?? 0;
  return letters > LONG ? { kind: "long" } : { kind: "text", input: TYPES[schema.format] ?? "text" };
}

function listKind(schema, root) {
  const items = plain(schema.items ?? {}, root);
  if (Array.isArray(items.enum)) return { kind: "choices", options: items.enum };
  return items.type === "string" ? { kind: "lines" } : { kind: "json" };
}

function kindOf(schema, root, depth) {
  if (schema.several) return { kind: "json" };
  if (Array.isArray(schema.enum) && schema.enum.length > 0) return { kind: "choice", options: schema.enum };
  if (Object.hasOwn(schema, "const")) return { kind: "fixed", value: schema.const };
  if (schema.type === "string") return textKind(schema);
  if (schema.type === "number" || schema.type === "integer") return { kind: schema.type };
  if (schema.type === "boolean") return { kind: "yes" };
  if (schema.type === "array") return listKind(schema, root);
  const fields = depth < DEEPEST ? fieldsWithin(schema, root, depth + 1) : null;
  return fields ? { kind: "group", fields } : { kind: "json" };
}

function field(name, given, isRequired, root, depth) {
  const schema = plain(given, root);
  return {
    name,
    label: words(schema.title) || name,
    hint: words(schema.description) ?? "",
    isRequired,
    initial: schema.default,
    example: Array.isArray(schema.examples) && schema.examples.length > 0 ? shown(schema.examples[0]) : "",
    ...kindOf(schema, root, depth),
  };
}

function fieldsWithin(schema, root, depth) {
  if (!isObject(schema.properties) || Object.keys(schema.properties).length === 0) return null;
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  return Object.entries(schema.properties).map(([name, one]) => field(name, one, required.has(name), root, depth));
}

/** The fields of a form, or null where the whole answer is to be written as JSON. */
export const fieldsOf = (schema) => (isObject(schema) ? fieldsWithin(plain(schema, schema), schema, 0) : null);
