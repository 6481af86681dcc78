// A document to try the knowledge with.

const text = `# Bakery handbook

## Returns

You may return bread within two days if you still have the receipt. We give you your money back or a fresh loaf, whichever you prefer. Cakes that were made to order cannot be returned.

## Opening hours

We are open from six in the morning to six in the evening, Monday to Saturday. On Sundays and public holidays we are closed.

## Orders

Order cakes at least three days ahead, by phone or at the counter. Orders of more than 50 euros need a deposit of 20 euros. You can change or cancel an order until noon on the day before.

## Delivery

We deliver within five kilometres, from Tuesday to Friday. Delivery costs 4 euros and is free for orders of 40 euros and more.

## Allergens

All our bread contains gluten. The rye bread and the nut cake contain nuts or traces of them. Ask at the counter for the list of ingredients.
`;

/** A short handbook as a file. */
export const exampleHandbook = () => new File([text], "Example handbook.md", { type: "text/markdown" });
