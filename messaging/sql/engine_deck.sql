-- Ten jitter fractions in shuffled order, one of each tenth, in antithetic pairs: any deck's mean is 0.5
-- exactly, so that a hundred messages can't all draw short gaps.
CREATE FUNCTION engine_deck() RETURNS double precision[]
LANGUAGE sql VOLATILE AS $$
  SELECT array_agg(fraction ORDER BY random()) FROM (
    SELECT unnest(ARRAY[(tenth + noise) / 10, 1 - (tenth + noise) / 10]) AS fraction
    FROM (SELECT tenth, random() AS noise FROM generate_series(0, 4) AS tenth) AS drawn
  ) AS pairs
$$;
