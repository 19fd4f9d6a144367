CREATE TABLE teams (user STRING FROM '$.who') USING json LOCATION 'teams.json';
